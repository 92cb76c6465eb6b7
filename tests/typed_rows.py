"""Checks rows of tables against the types in the Python API."""

from typing import get_args, get_type_hints, is_typeddict

from headway.api import rows as declared


def fits(value, hint):
    """Whether a value is of a type such as `float | None` or `list[str]`."""
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        return (
            isinstance(value, dict)
            and list(value) == list(hints)
            and all(map(fits, value.values(), hints.values()))
        )
    if getattr(hint, "__origin__", None) is list:
        return type(value) is list and all(fits(one, get_args(hint)[0]) for one in value)
    return any(fits(value, of) for of in get_args(hint)) if get_args(hint) else type(value) is hint


def check_rows(function, table):
    """Checks that each row has exactly the keys and types of the function's annotation."""
    from headway.api.table import Table

    annotation = function.__annotations__["return"]
    declared_type = eval(annotation, vars(declared) | {"Table": Table})
    (row_type,) = get_args(declared_type)
    assert len(table), f"{annotation} has no row to check"
    for row in table:
        wrong = {key: row[key] for key, hint in get_type_hints(row_type).items() if not fits(row[key], hint)}
        assert list(row) == list(get_type_hints(row_type))
        assert wrong == {}, annotation
