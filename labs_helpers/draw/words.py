"""Format numbers for figures: three digits, '4k' tokens, '64 KiB', '+3%'."""

from __future__ import annotations

from collections.abc import Sequence


def three(number: float) -> str:
    """Format with three digits and no exponent: '0.985', '31.2', '1,110'."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def short(number: float) -> str:
    """'3.4 M'"""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def bytes_text(number: float) -> str:
    """'3.4 MB'"""
    return f"{short(number)}B" if number >= 1e3 else f"{number:.0f} B"


def binary_bytes(size: float) -> str:
    """Format a size in bytes with a binary prefix: '64 KiB'."""
    power = 0
    while size >= 1000 and power < 3:
        size, power = size / 1024, power + 1
    return f"{size:.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def length_text(length: float) -> str:
    """Format a length: '4k' for 4,096; a length that is not a multiple of 1,024 stays as it is."""
    return f"{int(length) // 1024}k" if int(length) % 1024 == 0 else str(int(length))


def signed(share: float, digits: int = 0) -> str:
    """'+3%' or '−3%'"""
    return f"{round(100 * share, digits) + 0.0:+.{digits}f}%".replace("-", "−")  # + 0.0: no −0%


def listed(texts: Sequence[str]) -> str:
    """'a, b and c'"""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def span(values: Sequence[float], digits: int = 2) -> str:
    """Format a range from the least to the largest, '1.02 to 1.31'; one number if both read the same."""
    return " to ".join(dict.fromkeys(f"{value:.{digits}f}" for value in (min(values), max(values))))
