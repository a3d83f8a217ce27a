"""tf.bitwise: bits of integers."""
from ._tables import fill

TABLE = """
bitwise_and(x, y) = bitwise_and(a, b)
bitwise_or(x, y) = bitwise_or(a, b)
bitwise_xor(x, y) = bitwise_xor(a, b)
invert(x)
left_shift(x, y) = left_shift(x, by)
right_shift(x, y) = right_shift(x, by)
"""
fill(globals(), TABLE)
