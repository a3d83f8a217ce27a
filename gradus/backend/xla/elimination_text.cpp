/// Linear systems, by loops over columns that work on all matrices at once, and by StableHLO's own triangular solving.
#include <array>
#include <numbers>
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/solve_ops.h"

namespace gradus::xla {
namespace {

/// [..., n, m] as [matrices, n, m].
HloValue flat(HloWriter& out, const HloValue& x) {
  std::int64_t count = 1;
  for (int d = 0; d < x.rank() - 2; ++d) count *= x.shape()[d];
  return out.reshape(x, {count, x.shape()[-2], x.shape()[-1]});
}

/// The column or the row of each element of `like`.
HloValue numbers_along(HloWriter& out, const HloValue& like, int dimension) {
  return out.iota({i64, like.shape()}, dimension);
}

/// Sums over `dimension`, which stays with size 1, of the elements where `where` holds.
HloValue sum_where(HloWriter& out, const HloValue& where, const HloValue& x, int dimension) {
  const HloValue chosen = out.select(where, x, out.zeros_like(x));
  Shape kept = x.shape();
  kept.set(dimension, 1);
  return out.reshape(out.reduce("add", chosen, out.constant(x.dtype(), 0), {dimension}), kept);
}

/// A matrix a value: [matrices, 1, 1] as the shape of `like`.
HloValue spread(HloWriter& out, const HloValue& x, const HloValue& like) {
  return out.broadcast_in(x, like.shape(), {0, 1, 2});
}
HloValue spread(HloWriter& out, std::int64_t number, const HloValue& like) {
  return out.integer(number, i64, like.shape());
}
/// t, one i64, as the shape of `like`.
HloValue everywhere(HloWriter& out, const HloValue& t, const HloValue& like) { return out.broadcast(t, like.shape()); }

/// The scores of pivots: magnitudes where `allowed`, else -1; NaN is largest.
HloValue scores(HloWriter& out, const HloValue& x, const HloValue& allowed) {
  const HloValue size = out.same("abs", {x});
  const HloValue largest = out.number(std::numeric_limits<double>::infinity(), x.dtype(), x.shape());
  const HloValue marked = out.select(out.is_nan(x), largest, size);
  return out.select(allowed, marked, out.number(-1, x.dtype(), x.shape()));
}

/// The first number in `numbers` at which x is largest, of each matrix: i64[matrices, 1, 1].
HloValue first_largest(HloWriter& out, const HloValue& x, const HloValue& numbers) {
  const Shape one{x.shape()[0], 1, 1};
  const HloValue most = out.reshape(out.reduce("maximum", x, out.number(-1, x.dtype()), {1, 2}), one);
  const HloValue none = out.integer(std::numeric_limits<std::int64_t>::max());
  const HloValue places =
      out.select(out.compare("EQ", x, spread(out, most, x)), numbers, out.broadcast(none, x.shape()));
  return out.reshape(out.reduce("minimum", places, none, {1, 2}), one);
}

/// One step of an elimination: rows are exchanged so that the pivot of column k stands in row k.
struct Pivoted {
  HloValue matrix;  // after the exchange
  HloValue row;     // k of it: [matrices, 1, m]
  HloValue pivot;   // [matrices, 1, 1]
  HloValue place;   // where it stood: i64[matrices, 1, 1]
};

Pivoted pivoted(HloWriter& out, const HloValue& x, const HloValue& k) {
  const HloValue column = out.row_at(x, k, 2);
  const HloValue rows_of_column = numbers_along(out, column, 1);
  const HloValue allowed = out.compare("GE", rows_of_column, everywhere(out, k, column));
  const HloValue place = first_largest(out, scores(out, column, allowed), rows_of_column);
  const HloValue rows = numbers_along(out, x, 1);
  const HloValue is_place = out.compare("EQ", rows, spread(out, place, x));
  const HloValue is_k = out.compare("EQ", rows, everywhere(out, k, x));
  const HloValue row_k = out.row_at(x, k, 1), row = sum_where(out, is_place, x, 1);
  const HloValue exchanged = out.select(is_k, spread(out, row, x), out.select(is_place, spread(out, row_k, x), x));
  return {exchanged, row, out.row_at(row, k, 2), place};
}

/// Takes multiples of row k away from the rows where `where` holds, from column k + 1 on.
HloValue eliminated(HloWriter& out, const Pivoted& from, const HloValue& k, const HloValue& where) {
  const HloValue& x = from.matrix;
  const HloValue column = out.row_at(x, k, 2);
  const HloValue factors = out.divide(column, out.broadcast_in(from.pivot, column.shape(), {0, 1, 2}));
  const HloValue less = out.subtract(x, out.multiply(spread(out, factors, x), spread(out, from.row, x)));
  const HloValue behind = out.compare("GT", numbers_along(out, x, 2), everywhere(out, k, x));
  return out.select(out.both(where, behind), less, x);
}
HloValue rows_below(HloWriter& out, const HloValue& x, const HloValue& k) {
  return out.compare("GT", numbers_along(out, x, 1), everywhere(out, k, x));
}

HloValue triangular(HloWriter& out, const HloValue& a, const HloValue& b, bool lower, bool unit_diagonal = false) {
  return out.generic(
      "triangular_solve", {a, b},
      text("left_side = true, lower = ", lower ? "true" : "false",
           ", transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = ", unit_diagonal ? "true" : "false"),
      {}, {b.spec})[0];
}

HloValue unit_matrices(HloWriter& out, const Spec& spec) {
  const HloValue is_diagonal = out.compare("EQ", out.iota({i64, spec.shape}, 1), out.iota({i64, spec.shape}, 2));
  return out.convert(is_diagonal, spec.dtype);
}

HloValue write_solve(const Site& s) {
  HloWriter& out = s.out();
  const HloValue a = flat(out, s.in[0]), b = flat(out, s.in[1]);
  const std::int64_t n = a.shape()[1];
  const HloValue end = out.for_loop(n, {out.concatenate({a, b}, 2)}, [&](const HloValue& k, const HloValues& now) {
    const Pivoted step = pivoted(out, now[0], k);
    return HloValues{eliminated(out, step, k, rows_below(out, step.matrix, k))};
  })[0];
  const HloValue upper = out.slice_along(end, 2, 0, n), rest = out.slice_along(end, 2, n, b.shape()[2]);
  return out.reshape(triangular(out, upper, rest, false), s.spec().shape);
}

HloValue write_triangular_solve(const Site& s) {
  HloWriter& out = s.out();
  const HloValue y = triangular(out, flat(out, s.in[0]), flat(out, s.in[1]), s.v.op.as<TriangularSolve>()->lower);
  return out.reshape(y, s.spec().shape);
}

HloValue write_cholesky(const Site& s) {
  HloWriter& out = s.out();
  const HloValue x = flat(out, s.in[0]);
  const HloValue factor = out.generic("cholesky", {x}, "lower = true", {}, {x.spec})[0];
  const HloValue is_lower = out.compare("GE", numbers_along(out, x, 1), numbers_along(out, x, 2));
  return out.reshape(out.select(is_lower, factor, out.zeros_like(x)), s.spec().shape);
}

/// Takes the pivots of x: [matrices, n, n], negated where rows are exchanged, in order; where one of a matrix is 0, the
/// results are. Results are [matrices, 1, 1].
template <class Take> HloValues over_pivots(HloWriter& out, const HloValue& x, const HloValues& start, Take take) {
  const Shape one{x.shape()[0], 1, 1};
  HloValues first{x, out.constant(boolean, 0, one)};
  first.insert(first.end(), start.begin(), start.end());
  const HloValues end = out.for_loop(x.shape()[1], first, [&](const HloValue& k, const HloValues& now) {
    const Pivoted step = pivoted(out, now[0], k);
    const HloValue stays = out.compare("EQ", step.place, out.broadcast(k, one));
    const HloValue factor = out.select(stays, step.pivot, out.same("negate", {step.pivot}));
    const HloValue is_zero = out.compare("EQ", step.pivot, out.zeros_like(step.pivot));
    HloValues next{eliminated(out, step, k, rows_below(out, step.matrix, k)), out.either(now[1], is_zero)};
    const HloValues taken = take(HloValues(now.begin() + 2, now.end()), factor);
    next.insert(next.end(), taken.begin(), taken.end());
    return next;
  });
  HloValues results;
  for (std::size_t i = 2; i < end.size(); ++i) results.push_back(out.select(end[1], out.zeros_like(end[i]), end[i]));
  return results;
}

HloValue write_det(const Site& s) {
  HloWriter& out = s.out();
  if (s.in[0].shape().size() == 0) return out.number(1, s.spec().dtype, s.spec().shape);
  const HloValue x = flat(out, s.in[0]);
  const HloValue start = out.number(1, x.dtype(), {x.shape()[0], 1, 1});
  const auto take = [&](const HloValues& now, const HloValue& pivot) { return HloValues{out.multiply(now[0], pivot)}; };
  return out.reshape(over_pivots(out, x, {start}, take)[0], s.spec().shape);
}

/// Here the factor is a sign, and the exponent no whole number.
HloValue write_scaled_det(const Site& s) {
  HloWriter& out = s.out();
  const DType t = s.spec().dtype;
  Shape each = s.spec().shape;
  each.set(-1, 1);
  const int last = each.rank() - 1;
  if (s.in[0].shape().size() == 0) return out.concatenate({out.number(1, t, each), out.number(0, t, each)}, last);
  const HloValue x = flat(out, s.in[0]);
  const Shape one{x.shape()[0], 1, 1};
  const HloValue octave = out.number(1 / std::numbers::ln2, t, one);
  const auto take = [&](const HloValues& now, const HloValue& pivot) {
    const HloValue size = out.multiply(out.same("log", {out.same("abs", {pivot})}), octave);
    return HloValues{out.multiply(now[0], out.same("sign", {pivot})), out.add(now[1], size)};
  };
  const HloValues end = over_pivots(out, x, {out.number(1, t, one), out.number(0, t, one)}, take);
  return out.concatenate({out.reshape(end[0], each), out.reshape(end[1], each)}, last);
}

/// The matrix and the unit matrix beside it, which becomes the inverse.
HloValue write_inverse(const Site& s) {
  HloWriter& out = s.out();
  const HloValue x = flat(out, s.in[0]);
  const std::int64_t n = x.shape()[1];
  const HloValue start = out.concatenate({x, unit_matrices(out, x.spec)}, 2);
  const HloValue end = out.for_loop(n, {start}, [&](const HloValue& k, const HloValues& now) {
    const Pivoted step = pivoted(out, now[0], k);
    const HloValue is_k = out.compare("EQ", numbers_along(out, now[0], 1), everywhere(out, k, now[0]));
    const HloValue less = eliminated(out, step, k, out.negation(is_k));
    return HloValues{out.select(is_k, out.divide(less, spread(out, step.pivot, less)), less)};
  })[0];
  return out.reshape(out.slice_along(end, 2, n, n), s.spec().shape);
}

/// As the processor's adjugate (backend/cpu/kernels/adjugate.cpp), which has the equations: exchanges of rows and
/// columns, L and U in the place of the matrix, and no division by the last pivot.
class AdjugateText {
 public:
  explicit AdjugateText(const Site& s) : s_(s), out_(s.out()), x_(flat(out_, s.in[0])), n_(x_.shape()[1]) {}

  HloValue write() {
    const Shape one{x_.shape()[0], 1, 1};
    const HloValue rows = out_.iota({i64, {x_.shape()[0], n_, 1}}, 1);
    const HloValue columns = out_.iota({i64, {x_.shape()[0], 1, n_}}, 2);
    const HloValues end =
        out_.for_loop(n_ - 1, {x_, rows, columns, out_.number(1, x_.dtype(), one), out_.constant(boolean, 0, one)},
                      [&](const HloValue& k, const HloValues& now) { return step(k, now); });
    const HloValue y = of_factors(end[0]);
    const HloValue placed = put_back(y, end[1], end[2]);
    const HloValue scaled = out_.multiply(placed, spread(out_, end[3], placed));
    return out_.reshape(out_.select(spread(out_, end[4], scaled), out_.zeros_like(scaled), scaled), s_.spec().shape);
  }

 private:
  /// x with rows (or columns) k and `place` exchanged.
  HloValue exchanged(const HloValue& x, const HloValue& k, const HloValue& place, int dimension) {
    const HloValue numbers = numbers_along(out_, x, dimension);
    const HloValue is_place = out_.compare("EQ", numbers, spread(out_, place, x));
    const HloValue is_k = out_.compare("EQ", numbers, everywhere(out_, k, x));
    const HloValue at_k = out_.row_at(x, k, dimension), at_place = sum_where(out_, is_place, x, dimension);
    return out_.select(is_k, spread(out_, at_place, x), out_.select(is_place, spread(out_, at_k, x), x));
  }

  HloValues step(const HloValue& k, const HloValues& now) {
    const HloValue& x = now[0];
    const HloValue row = numbers_along(out_, x, 1), column = numbers_along(out_, x, 2);
    const HloValue from = everywhere(out_, k, x);
    const HloValue allowed = out_.both(out_.compare("GE", row, from), out_.compare("GE", column, from));
    const HloValue number = out_.add(out_.multiply(row, spread(out_, n_, x)), column);
    const HloValue place = first_largest(out_, scores(out_, x, allowed), number);
    const HloValue n = out_.integer(n_, i64, place.shape());
    const HloValue at_row = out_.divide(place, n), at_column = out_.subtract(place, out_.multiply(at_row, n));
    const HloValue moved = exchanged(exchanged(x, k, at_row, 1), k, at_column, 2);

    const HloValue row_k = out_.row_at(moved, k, 1), column_k = out_.row_at(moved, k, 2);
    const HloValue pivot = out_.row_at(row_k, k, 2);
    const HloValue t = out_.broadcast(k, place.shape());
    const HloValue keeps_sign = out_.compare("EQ", out_.compare("EQ", at_row, t), out_.compare("EQ", at_column, t));
    const HloValue factor = out_.select(keeps_sign, pivot, out_.same("negate", {pivot}));
    const HloValue factors = out_.divide(column_k, out_.broadcast_in(pivot, column_k.shape(), {0, 1, 2}));
    const HloValue below = out_.compare("GT", row, from);
    const HloValue less = out_.subtract(moved, out_.multiply(spread(out_, factors, x), spread(out_, row_k, x)));
    const HloValue is_column = out_.both(below, out_.compare("EQ", column, from));
    const HloValue is_rest = out_.both(below, out_.compare("GT", column, from));
    const HloValue next = out_.select(is_column, spread(out_, factors, x), out_.select(is_rest, less, moved));
    const HloValue is_zero = out_.compare("EQ", pivot, out_.zeros_like(pivot));
    return {next, exchanged(now[1], k, at_row, 1), exchanged(now[2], k, at_column, 2), out_.multiply(now[3], factor),
            out_.either(now[4], is_zero)};
  }

  /// adj(U) L^-1 but for the product of the pivots.
  HloValue of_factors(const HloValue& lu) {
    const HloValue y = triangular(out_, lu, unit_matrices(out_, lu.spec), true, true);
    if (n_ == 1) return y;
    const std::int64_t last = n_ - 1;
    const HloValue last_row = out_.slice_along(y, 1, last, 1), above = out_.slice_along(y, 1, 0, last);
    const HloValue upper = out_.slice_along(lu, 1, 0, last);
    const HloValue d = out_.slice_along(out_.slice_along(lu, 1, last, 1), 2, last, 1);
    const HloValue of_last = out_.slice_along(upper, 2, last, 1);
    const HloValue right = out_.subtract(out_.multiply(spread(out_, d, above), above),
                                         out_.multiply(spread(out_, of_last, above), spread(out_, last_row, above)));
    const HloValue solved = triangular(out_, out_.slice_along(upper, 2, 0, last), right, false);
    return out_.concatenate({solved, last_row}, 1);
  }

  /// Element i, j of y at columns[i], rows[j].
  HloValue put_back(const HloValue& y, const HloValue& rows, const HloValue& columns) {
    const std::int64_t b = y.shape()[0];
    const Shape cube{b, n_, n_, n_};
    // [matrix, i, to, j]
    const HloValue by_column = out_.broadcast_in(out_.reshape(columns, {b, n_}), cube, {0, 1});
    const HloValue along = out_.broadcast_in(y, cube, {0, 1, 3});
    const HloValue first = out_.reduce(
        "add", out_.select(out_.compare("EQ", by_column, out_.iota({i64, cube}, 2)), along, out_.zeros_like(along)),
        out_.constant(y.dtype(), 0), {1});
    const HloValue by_row = out_.broadcast_in(out_.reshape(rows, {b, n_}), cube, {0, 2});
    const HloValue across = out_.broadcast_in(first, cube, {0, 1, 2});  // [matrix, to, j, to]
    return out_.reduce(
        "add", out_.select(out_.compare("EQ", by_row, out_.iota({i64, cube}, 3)), across, out_.zeros_like(across)),
        out_.constant(y.dtype(), 0), {2});
  }

  const Site& s_;
  HloWriter& out_;
  const HloValue x_;
  const std::int64_t n_;
};

HloValue write_adjugate(const Site& s) { return AdjugateText(s).write(); }

constexpr std::array elimination_table{
    Row{"solve", write_solve},          Row{"triangular_solve", write_triangular_solve},
    Row{"cholesky", write_cholesky},    Row{"det", write_det},
    Row{"inverse", write_inverse},      Row{"adjugate", write_adjugate},
    Row{"scaled_det", write_scaled_det}};

}  // namespace

std::span<const Row> elimination_rows() { return elimination_table; }

}  // namespace gradus::xla
