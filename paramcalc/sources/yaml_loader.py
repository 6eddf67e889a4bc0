"""YAML as data only: the safe loader, without tags, without duplicate keys, and with numbers as people mean them."""

from __future__ import annotations

import re
from typing import Any

import yaml  # noqa: TID253  (this module is itself imported only where YAML is read)

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictLoader(_Base):  # type: ignore[misc]  # which of two bases is known at run time
    """yaml.SafeLoader that refuses to let a later key silently replace an earlier one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different."""
        seen: dict[Any, yaml.Node] = {}
        for key_node, _ in node.value:
            key = getattr(key_node, "value", None)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands there twice", key_node.start_mark
                )
            seen[key if isinstance(key, str) else id(key_node)] = key_node
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """A whole number. YAML 1.1 reads 010000 as octal and 1:30 in base 60, which nobody means by a size."""
        if re.match(r"[-+]?(0[0-9_]|.*:)", node.value):
            raise yaml.constructor.ConstructorError(
                None, None, f"the number {node.value} is octal or base 60 in YAML", node.start_mark
            )
        number: int = super().construct_yaml_int(node)
        return number


StrictLoader.add_constructor("tag:yaml.org,2002:int", StrictLoader.construct_yaml_int)
