"""Count parameters by a fold over the component tree; explain the count."""
