"""tf.linalg: products, decompositions, diagonals."""
from .. import ops
from ._tables import fill

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
    """The product of matrices and vectors."""
    return ops.matvec(ops.matrix_transpose(a) if transpose_a or adjoint_a else a, b)


def diag(diagonal, name="diag", k=0):
    """Matrices with this diagonal, k places above the main one."""
    return ops.diag(diagonal, k=k)


def diag_part(input, name="diag_part", k=0):
    """The diagonal of matrices, k places above the main one."""
    return ops.diag_part(input, k=k)


def set_diag(input, diagonal, name="set_diag", k=0):
    """Matrices with another diagonal."""
    return ops.set_diag(input, diagonal, k=k)


def einsum(equation, *inputs):
    """Einstein's summation of the inputs."""
    return ops.einsum(equation, list(inputs))


def eigh(tensor, name=None):
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices."""
    return tuple(ops.eigh(tensor))


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """The identity, [batch_shape..., num_rows, num_columns]."""
    made = ops.eye(num_rows, num_rows if num_columns is None else num_columns, dtype=dtype)
    return made if batch_shape is None else ops.broadcast_to(made, [*batch_shape, *made.shape])


def qr(input, full_matrices=False, name=None):
    """Orthogonal and upper triangular factors."""
    return ops.qr(input, full_matrices=full_matrices)


def lu(input, output_idx_type="int32", name=None):
    """Triangular factors in one matrix, and the permutation."""
    return tuple(ops.lu(input, output_idx_type))


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """Singular values, and both bases of singular vectors."""
    found = ops.svd(tensor, full_matrices=full_matrices, compute_uv=compute_uv)
    return (found.s, found.u, found.v) if compute_uv else found.s


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    """The solution of least squares."""
    return ops.lstsq(matrix, rhs, l2_regularizer=l2_regularizer, fast=fast)


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """The norm of vectors, or along axes."""
    if ord == "euclidean":
        return ops.norm(tensor, axis=axis, keepdims=keepdims)
    return ops.norm(tensor, float(ord), axis=axis, keepdims=keepdims)


def normalize(tensor, ord="euclidean", axis=None, name=None):
    """The tensor divided by its norm, and the norm."""
    return tuple(ops.normalize(tensor, ord=2.0 if ord == "euclidean" else float(ord), axis=axis))


def tensordot(a, b, axes, name=None):
    """Sums of products over axes: a number of them, or two lists."""
    return ops.tensordot(a, b, axes) if isinstance(axes, int) else ops.tensordot(a, b, *axes)
