"""A strict YAML loader: data only, no duplicate keys, decimal integers."""

from __future__ import annotations

import re
from typing import Any

import yaml  # noqa: TID253  (this module is imported only to read YAML)

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictLoader(_Base):  # type: ignore[misc]  # one of two bases, chosen at run time
    """yaml.SafeLoader that rejects duplicate keys and integers that are not decimal."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping. Raises ConstructorError for a duplicate key."""
        seen: dict[Any, yaml.Node] = {}
        for key_node, _ in node.value:
            key = getattr(key_node, "value", None)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen[key if isinstance(key, str) else id(key_node)] = key_node
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """A decimal integer. Raises ConstructorError for 010000 (octal in YAML 1.1) and 1:30 (base 60)."""
        if re.match(r"[-+]?(0[0-9_]|.*:)", node.value):
            raise yaml.constructor.ConstructorError(
                None, None, f"the number {node.value} is octal or base 60 in YAML", node.start_mark
            )
        number: int = super().construct_yaml_int(node)
        return number


StrictLoader.add_constructor("tag:yaml.org,2002:int", StrictLoader.construct_yaml_int)
