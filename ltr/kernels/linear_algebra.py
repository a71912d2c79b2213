"""numba without scipy's linear algebra, until a kernel needs it.

When numba starts it imports all of ``scipy.linalg``, 16 MB and a tenth of a second, only to see whether it is there; where a kernel calls BLAS or LAPACK
it looks again. No kernel of the core does, and scipy is installed wherever the core is. Importing this module leaves out the first look.
"""

from numba.core.cpu import CPUContext

_load = CPUContext.load_additional_registries


def _load_without_looking(self: CPUContext) -> None:
    from numba.np import linalg

    look = getattr(linalg, "ensure_blas", None)
    if look is None:
        _load(self)
        return
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = look
    arraymath.ensure_blas = look
    _load(self)


CPUContext.load_additional_registries = _load_without_looking
