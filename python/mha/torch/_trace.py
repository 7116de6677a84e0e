# SPDX-License-Identifier: MIT
"""Functions and modules of mha.torch as single nodes of a graph of torch.fx.symbolic_trace()."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.fx import Proxy

_Function = TypeVar("_Function", bound=Callable[..., Any])


def proxy_in(arguments: Iterable[Any]) -> Proxy | None:
    """The first argument that stands for a value which is not known yet."""
    return next((a for a in arguments if isinstance(a, Proxy)), None)


def module_node(module: nn.Module, proxy: Proxy, arguments: dict[str, Any]) -> Any:
    """The call of a module as a node, as fx does for modules of torch.nn."""
    tracer = proxy.tracer
    return tracer.create_proxy("call_module", tracer.path_of_module(module), (), arguments)


def function_node(
    proxy: Proxy, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The call of a function as a node."""
    return proxy.tracer.create_proxy("call_function", function, args, kwargs)


def traced(function: _Function) -> _Function:
    """The function; while torch.fx traces, its call is a node of the graph instead."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is Tensor:
            return function(*args, **kwargs)
        proxy = proxy_in((*args, *kwargs.values()))
        if proxy is None:
            return function(*args, **kwargs)
        return function_node(proxy, call, args, kwargs)

    return call  # type: ignore[return-value]
