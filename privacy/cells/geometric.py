"""Weights of layers for boxes in the plane: each layer weighs cube root of 2 times the next coarser one.

The border of a box meets O(2^(h - l)) nodes of layer l, and the sum of n_l / epsilon_l^2 over layers, with a fixed sum
of epsilon_l, is least if epsilon_l is proportional to the cube root of n_l. Weights are integers.

Source: Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012, arXiv:1103.5170.
"""

COARSEST = 8
"""Weight of the coarsest layer, large enough that integer weights are near the geometric ones."""


def geometric(layers: int) -> tuple[int, ...]:
    """Return weights that grow by the cube root of 2, beginning with the layer of all cells together.

    >>> geometric(7)
    (8, 10, 13, 16, 20, 25, 32)
    """
    return tuple(round(COARSEST * 2 ** (layer / 3)) for layer in range(layers)) if layers > 1 else (1,)
