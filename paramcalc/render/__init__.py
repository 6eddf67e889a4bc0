"""From a report to text. A renderer takes a report and returns a string; it opens nothing and asks nothing."""
