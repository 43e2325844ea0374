"""The calculator. It walks a syntax tree, so that no code is executed and the size of each number is limited."""

from __future__ import annotations

import ast
import re
from decimal import Decimal, DecimalException, localcontext
from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.i18n import gettext as _
from agents.toolbox.arithmetic import CONSTANTS, FUNCTIONS, OPERATORS, CalculatorError, Number, check, new_context
from agents.tools import tool

MAX_LENGTH = 1_000
SIGNIFICANT_DIGITS = 28
# A number with a larger exponent is written with it.
MAX_PLAIN_EXPONENT = 40

_LOOKALIKES = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "π": "pi", "（": "(", "）": ")"})
_GROUPING = re.compile(r"(?<=\d)_(?=\d)")
# The e of 1e5 is not a name. The groups are not possessive, because Python before 3.11.5 matches those wrongly.
_NUMBER_THEN_NAME = re.compile(r"(?<![\w.])[\d.]++(?:[eE][+-]?\d++[A-Za-z_]|(?![eE][+-]?\d)[A-Za-z_])")


@tool(time_limit=5, about=_("Calculates exactly"))
async def calculator(
    expression: Annotated[
        str,
        Field(
            description=f"For example: (3.5 + 2) ** 2 / sqrt(7). At most {MAX_LENGTH:,} characters",
            max_length=MAX_LENGTH,
        ),
    ],
) -> str:
    """Calculate an arithmetic expression exactly (integers of up to 4,000 digits) or to 28 digits.

    Operators: + - * / // (floor) % (remainder) ** or ^ (power), parentheses. Angles are in radians.
    Functions: abs, round(x, digits), floor, ceil, min, max, sqrt, exp, ln, log(x, base), log2, log10, sin, cos, tan,
    asin, acos, atan, atan2(y, x), sinh, cosh, tanh, degrees, radians, hypot, factorial, gcd, lcm, comb, perm.
    Constants: pi, e, tau.
    """
    return calculate(expression)


def calculate(expression: str) -> str:
    """Return the result of the expression. Raise ToolError with a message that helps to correct it."""
    text = _GROUPING.sub("", expression.translate(_LOOKALIKES).strip())
    with localcontext(new_context()):
        try:
            return _format(_value(_parse(text).body, text))
        except CalculatorError as error:
            raise ToolError(str(error)) from error
        except ZeroDivisionError as error:
            raise ToolError("Division by zero.") from error
        except DecimalException as error:
            raise ToolError("The result is undefined or too large.") from error
        except RecursionError as error:
            raise ToolError("The expression is nested too deeply.") from error


def _parse(text: str) -> ast.Expression:
    if len(text) > MAX_LENGTH:
        raise CalculatorError(f"The expression is longer than {MAX_LENGTH:,} characters.")
    if _NUMBER_THEN_NAME.search(text):
        raise CalculatorError("A number is followed by a name. Write multiplication explicitly, as in 2*pi.")
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError) as error:  # MemoryError: too many parentheses
        raise CalculatorError(f"This is not an arithmetic expression: {text[:100]}") from error


def _value(node: ast.expr, text: str) -> Number:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return _literal(node, text)
        case ast.Name(id=name) if name.lower() in CONSTANTS:
            return CONSTANTS[name.lower()]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            value = _value(operand, text)
            return value if isinstance(sign, ast.UAdd) else -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return check(OPERATORS[type(op)](_value(left, text), _value(right, text)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name.lower() in FUNCTIONS:
            return check(_apply(name.lower(), [_value(argument, text) for argument in arguments]))
    raise CalculatorError(f"Not allowed in a calculation: {ast.get_source_segment(text, node) or text}")


def _literal(node: ast.Constant, text: str) -> Number:
    """Return the number exactly as it is written: 0.1 is a tenth, not the nearest binary fraction."""
    if isinstance(node.value, int):
        return check(node.value)
    return check(Decimal(ast.get_source_segment(text, node) or ""))


def _apply(name: str, arguments: list[Number]) -> Number:
    try:
        return FUNCTIONS[name](*arguments)
    except TypeError as error:
        raise CalculatorError(f"{name} does not take {len(arguments)} arguments.") from error


def _format(value: Number) -> str:
    if isinstance(value, int):
        return str(value)
    with localcontext() as context:
        context.prec = SIGNIFICANT_DIGITS
        rounded = (+value).normalize()
    if rounded == 0:
        return "0"
    return f"{rounded:f}" if abs(rounded.adjusted()) <= MAX_PLAIN_EXPONENT else f"{rounded:E}"
