"""tf.linalg: products, decompositions, diagonals."""
import math

from .. import ops
from ._tables import fill
from .tensors import convert_to_tensor, eye

TABLE = """
adjoint(matrix) = adjoint(x)
band_part(input, num_lower, num_upper) = band_part(x, num_lower, num_upper)
cholesky(input) = cholesky(x)
cholesky_solve(chol, rhs)
cross(a, b)
det(input) = det(x)
eigvalsh(tensor) = eigvalsh(x)
expm(input) = expm(x)
inv(input) = inverse(x)
l2_normalize(x, axis=None, epsilon=1e-12)
logdet(matrix)
lu_reconstruct(lower_upper, perm)
lu_solve(lower_upper, perm, rhs)
matmul(a, b, transpose_a=False, transpose_b=False)
matrix_rank(a, tol=None)
matrix_transpose(a) = matrix_transpose(x)
pinv(a, rcond=None)
slogdet(input) = slogdet(x)
solve(matrix, rhs, adjoint=False)
tensor_diag(diagonal)
tensor_diag_part(input) = tensor_diag_part(x)
trace(x)
triangular_solve(matrix, rhs, lower=True, adjoint=False)
"""
fill(globals(), TABLE)


def matvec(a, b, transpose_a=False, adjoint_a=False):
    """The product of matrices [..., m, k] and vectors [..., k]."""
    return ops.matvec(ops.matrix_transpose(a) if transpose_a or adjoint_a else a, b)


def diag(diagonal, name="diag", k=0):
    """Matrices with this diagonal, k above the main one, and zeros elsewhere."""
    return ops.diag(diagonal, k=k)


def diag_part(input, name="diag_part", k=0):
    """The diagonal of matrices, k above the main one."""
    return ops.diag_part(input, k=k)


def set_diag(input, diagonal, name="set_diag", k=0):
    """Matrices with diagonal k replaced."""
    return ops.set_diag(input, diagonal, k=k)


def einsum(equation, *inputs):
    """Einstein's summation of the inputs."""
    return ops.einsum(equation, list(inputs))


def eigh(tensor, name=None):
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices."""
    return tuple(ops.eigh(tensor))


def qr(input, full_matrices=False, name=None):
    """Orthogonal and upper triangular factors."""
    return ops.qr(input, full_matrices=full_matrices)


def lu(input, output_idx_type="int32", name=None):
    """Triangular factors in one matrix, and the permutation of the rows."""
    return tuple(ops.lu(input, output_idx_type))


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """Singular values, descending, and the left and right singular vectors (s, u, v); only s without compute_uv."""
    found = ops.svd(tensor, full_matrices=full_matrices, compute_uv=compute_uv)
    return (found.s, found.u, found.v) if compute_uv else found.s


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    """The x that minimizes |matrix x - rhs|^2 + l2_regularizer |x|^2."""
    return ops.lstsq(matrix, rhs, l2_regularizer=l2_regularizer, fast=fast)


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """The norm of all elements, of vectors along an axis, or, if axis is a pair, of matrices: "euclidean" or "fro"; 1, the
    largest sum of a column; inf, the largest sum of a row; 2, the largest singular value. ValueError for another ord."""
    tensor = convert_to_tensor(tensor)
    keepdims = bool(keepdims)
    is_matrix = isinstance(axis, (tuple, list)) and len(axis) == 2
    if ord == "euclidean" or ord == "fro" and is_matrix:
        return ops.norm(tensor, axis=axis, keepdims=keepdims)
    if ord == "fro" or float(ord) <= 0:
        raise ValueError(f"norm: ord is a number above 0, inf, 'euclidean', or 'fro' of a pair of axes, not {ord!r}")
    if not is_matrix:
        return ops.norm(tensor, float(ord), axis=axis, keepdims=keepdims)
    rows, columns = (int(n) % tensor.ndim for n in axis)
    if ord == 2:
        found = ops.reduce_max(_singular_values(tensor, rows, columns), axis=-1)
        return ops.expand_dims(ops.expand_dims(found, min(rows, columns)), max(rows, columns)) if keepdims else found
    if ord not in (1, math.inf):
        raise ValueError(f"norm: of matrices ord is 1, 2, inf, 'fro' or 'euclidean', not {ord!r}")
    added, largest = (rows, columns) if ord == 1 else (columns, rows)
    sums = ops.reduce_sum(ops.abs(tensor), axis=added, keepdims=True)
    found = ops.reduce_max(sums, axis=largest, keepdims=True)
    return found if keepdims else ops.squeeze(found, [rows, columns])


def _singular_values(tensor, rows, columns):
    others = [n for n in range(tensor.ndim) if n not in (rows, columns)]
    return ops.svd(ops.transpose(tensor, [*others, rows, columns]), compute_uv=False).s


def normalize(tensor, ord="euclidean", axis=None, name=None):
    """The tensor divided by its norm, and the norm."""
    return tuple(ops.normalize(tensor, ord=2.0 if ord == "euclidean" else float(ord), axis=axis))


def tensordot(a, b, axes, name=None):
    """Sums of products over axes: the last ones of a and first ones of b by their number, or two lists."""
    return ops.tensordot(a, b, axes) if isinstance(axes, int) else ops.tensordot(a, b, *axes)
