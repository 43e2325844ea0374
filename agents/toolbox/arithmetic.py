"""The operators and functions of the calculator, and the limits of its numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

Number = int | Decimal

MAX_DIGITS = 4_000
MAX_BITS = 13_287
MAX_EXPONENT = 100_000
# The digits of a calculation. Fewer digits are shown, so that 1/3*3 is 1.
PRECISION = 50
# The correct places of floating-point functions. Results are rounded to them, so that sin(pi) is 0 and not 1.2e-16.
FLOAT_PLACES = 15


class CalculatorError(Exception):
    """The calculation is not possible. The text is the reason."""


def new_context() -> Context:
    return Context(
        prec=PRECISION, Emax=MAX_EXPONENT, Emin=-MAX_EXPONENT, traps=[InvalidOperation, DivisionByZero, Overflow]
    )


def check(value: Number) -> Number:
    """Return the value. Raise CalculatorError if it is an integer with too many digits."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise CalculatorError(f"The result has more than {MAX_DIGITS:,} digits.")
    return value


def _whole(value: Number) -> int:
    """Return the integer that is equal to a number. Raise CalculatorError, also for numbers that need much memory."""
    if isinstance(value, int):
        return value
    if value.adjusted() > MAX_DIGITS or value != value.to_integral_value():
        raise CalculatorError("This function only accepts whole numbers, up to a limit.")
    return int(value)


def _add(a: Number, b: Number) -> Number:
    return a + b


def _subtract(a: Number, b: Number) -> Number:
    return a - b


def _multiply(a: Number, b: Number) -> Number:
    return a * b


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and b != 0 and a % b == 0:
        return a // b
    return Decimal(a) / Decimal(b)


def _floor_divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return _floor(Decimal(a) / Decimal(b))


def _remainder(a: Number, b: Number) -> Number:
    """Return the remainder with the sign of the divisor, for decimals as for integers."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    rest = Decimal(a) % Decimal(b)
    return rest + b if rest != 0 and (rest < 0) != (b < 0) else rest


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and (base.bit_length() - 1) * exponent > MAX_BITS:
            raise CalculatorError(f"The result has more than {MAX_DIGITS:,} digits.")
        whole: int = base**exponent
        return whole
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    return Decimal(base) ** Decimal(exponent)


OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _remainder,
    ast.Pow: _power,
    ast.BitXor: _power,
}


def _floor(value: Number) -> Number:
    return value if isinstance(value, int) else _whole(_bounded(value).to_integral_value("ROUND_FLOOR"))


def _ceil(value: Number) -> Number:
    return -_floor(-value)


def _round(value: Number, digits: Number = 0) -> Number:
    """Round a number. Half is rounded away from zero, as is usual in mathematics."""
    places = _whole(digits)
    if abs(places) > MAX_DIGITS:
        raise CalculatorError("round accepts only a small number of digits.")
    unit = Fraction(10) ** -places
    scaled = abs(Fraction(_bounded(Decimal(value)) if isinstance(value, Decimal) else value)) / unit
    rounded = math.floor(scaled + Fraction(1, 2)) * unit * (-1 if value < 0 else 1)
    return rounded.numerator if rounded.denominator == 1 else Decimal(rounded.numerator) / Decimal(rounded.denominator)


def _bounded(value: Decimal) -> Decimal:
    if abs(value.adjusted()) > MAX_DIGITS:
        raise CalculatorError(f"The number has more than {MAX_DIGITS:,} digits.")
    return value


def _square_root(value: Number) -> Number:
    if value < 0:
        raise CalculatorError("The square root of a negative number is not real.")
    if isinstance(value, int) and math.isqrt(value) ** 2 == value:
        return math.isqrt(value)
    return Decimal(value).sqrt()


def _logarithm(value: Number, base: Number | None = None) -> Number:
    if value <= 0 or (base is not None and (base <= 0 or base == 1)):
        raise CalculatorError("A logarithm needs a positive number and a positive base other than 1.")
    return Decimal(value).ln() if base is None else Decimal(value).ln() / Decimal(base).ln()


def _floating(function: Callable[..., float]) -> Callable[..., Number]:
    def calculate(*values: Number) -> Number:
        try:
            return Decimal(repr(round(function(*map(float, values)), FLOAT_PLACES)))
        except (ValueError, OverflowError) as error:
            raise CalculatorError(
                f"{function.__name__} is not defined for these numbers, or its result is too large."
            ) from error

    return calculate


def _factorial(value: Number) -> Number:
    number = _whole(value)
    if not 0 <= number <= 1_400:
        raise CalculatorError("factorial accepts whole numbers from 0 to 1,400.")
    return math.factorial(number)


def _choosing(function: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    def calculate(total: Number, chosen: Number) -> Number:
        n, k = _whole(total), _whole(chosen)
        if n < 0 or k < 0:
            raise CalculatorError(f"{function.__name__} accepts whole numbers of 0 or more.")
        if min(k, n) * n.bit_length() > 2 * MAX_BITS:
            raise CalculatorError(f"{function.__name__} of numbers this big has too many digits.")
        return function(n, k)

    return calculate


def _whole_numbers(function: Callable[..., int]) -> Callable[..., Number]:
    return lambda *values: function(*map(_whole, values))


CONSTANTS: dict[str, Number] = {
    "pi": Decimal("3.1415926535897932384626433832795028841971693993751"),
    "tau": Decimal("6.2831853071795864769252867665590057683943387987502"),
    "e": Decimal("2.7182818284590452353602874713526624977572470936999"),
}

FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": lambda value: abs(value),
    "round": _round,
    "floor": _floor,
    "ceil": _ceil,
    "min": lambda first, *rest: min([first, *rest]),
    "max": lambda first, *rest: max([first, *rest]),
    "sqrt": _square_root,
    "exp": lambda value: Decimal(value).exp(),
    "ln": lambda value: _logarithm(value),
    "log": _logarithm,
    "log2": lambda value: _logarithm(value, 2),
    "log10": lambda value: _logarithm(value, 10),
    "sin": _floating(math.sin),
    "cos": _floating(math.cos),
    "tan": _floating(math.tan),
    "asin": _floating(math.asin),
    "acos": _floating(math.acos),
    "atan": _floating(math.atan),
    "atan2": _floating(math.atan2),
    "sinh": _floating(math.sinh),
    "cosh": _floating(math.cosh),
    "tanh": _floating(math.tanh),
    "degrees": lambda value: Decimal(value) * 180 / CONSTANTS["pi"],
    "radians": lambda value: Decimal(value) * CONSTANTS["pi"] / 180,
    "hypot": lambda a, b: _square_root(a * a + b * b),
    "factorial": _factorial,
    "gcd": _whole_numbers(math.gcd),
    "lcm": _whole_numbers(math.lcm),
    "comb": _choosing(math.comb),
    "perm": _choosing(math.perm),
}
