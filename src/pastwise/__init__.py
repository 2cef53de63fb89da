"""Turn yesterday's decisions into a policy for today's goal.

From a log of past transitions and a new goal, pastwise learns a stochastic decision policy for
that goal. Public names are listed in ``__init__.pyi``; each is loaded when it is first used, so
that a program waits only for what it needs.
"""

__version__ = "0.1.0"


def _load(name: str) -> object:
    """A public name, ``__all__`` or ``__dir__``, as `lazy_loader` finds it in the stub file."""
    import lazy_loader

    load_name, list_names, public_names = lazy_loader.attach_stub(__name__, __file__)
    globals().update(__getattr__=load_name, __dir__=list_names, __all__=public_names)
    return public_names if name == "__all__" else load_name(name)


__getattr__ = _load


def __dir__() -> list[str]:
    _load("__all__")
    names: list[str] = globals()["__dir__"]()
    return names
