/// Reflections I - tau v v', from which orthogonal factorizations are made, one by one and in blocks. Vectors are rows
/// of a matrix, filled up with zeros to whole vectors of the processor.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include "gradus/backend/cpu/kernels/factor_products.h"
#include "gradus/backend/cpu/kernels/row_functions.h"

namespace gradus::library::factors {

/// Reflections that are applied at a time.
constexpr std::int64_t block_reflections = 32;

/// The multiple of vector_elements at or before `i`: where functions of rows may begin.
constexpr std::int64_t start_before(std::int64_t i) { return i / vector_elements * vector_elements; }

/// Rows [begin, end) of this member's, of `rows`, whose work is that of `cost` of a row: so that members have equal
/// shares, by whole blocks.
template <class Cost> Columns own_rows(const Team& team, std::int64_t rows, const Cost& cost) {
  double all = 0;
  for (std::int64_t i = 0; i < rows; i += block_reflections) all += cost(i);
  Columns own{rows, rows};
  double before = 0;
  for (std::int64_t i = 0; i < rows; i += block_reflections) {
    if (own.begin == rows && before >= all * team.worker() / team.size()) own.begin = i;
    if (before >= all * (team.worker() + 1) / team.size()) {
      own.end = i;
      break;
    }
    before += cost(i);
  }
  return {std::min(own.begin, own.end), own.end};
}

// Powers of two by bits: an object file has no library of functions.

/// The exponent e of x, which is neither 0 nor infinite, from 2^(e - 1) to 2^e; of a subnormal number a larger one.
inline int exponent_of(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1022; }
/// 2^e, or the nearest normal power of two.
inline double power_of_two(int e) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::clamp(e, -1022, 1023) + 1023) << 52);
}

/// sqrt(a^2 + b^2), which overflows only if it is itself too large.
inline double hypotenuse(double a, double b) {
  const double sum = a * a + b * b;
  if (sum > 1e-280 && sum < 1e280) return std::sqrt(sum);
  const double larger = std::max(std::abs(a), std::abs(b)), less = std::min(std::abs(a), std::abs(b));
  if (larger == 0 || !(larger < std::numeric_limits<double>::infinity())) return larger + less;
  const double ratio = less / larger;
  return larger * std::sqrt(1 + ratio * ratio);
}

/// The Euclidean length of x, in four chains.
template <class T> double length_of(const T* x, std::int64_t n) {
  const auto scaled = [&](double scale) {
    double sums[4] = {};
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      for (int k = 0; k < 4; ++k) {
        const double element = static_cast<double>(x[i + k]) * scale;
        sums[k] += element * element;
      }
    for (; i < n; ++i) {
      const double element = static_cast<double>(x[i]) * scale;
      sums[0] += element * element;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  };
  const double sum = scaled(1);
  if (sum > 1e-280 && sum < 1e280) return std::sqrt(sum);
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  if (largest == 0 || !(largest < std::numeric_limits<double>::infinity())) return largest;
  const int exponent = exponent_of(largest);
  return std::sqrt(scaled(power_of_two(-exponent))) * power_of_two(exponent);
}

/// The reflection that makes (pivot, rest) a multiple of the first unit vector, which `pivot` becomes; `rest` becomes
/// the rest of v, whose first element is 1. Returns tau. Signs are LAPACK's: the pivot changes its own, unless the rest
/// is 0, where tau is 0.
template <class T> T reflect(T& pivot, T* rest, std::int64_t n) {
  const double length = length_of(rest, n);
  if (length == 0) return 0;
  const double alpha = static_cast<double>(pivot), size = hypotenuse(alpha, length);
  const double beta = alpha >= 0 ? -size : size, divisor = alpha - beta;
  for (std::int64_t i = 0; i < n; ++i) rest[i] = static_cast<T>(static_cast<double>(rest[i]) / divisor);
  pivot = static_cast<T>(beta);
  return static_cast<T>((beta - alpha) / beta);
}

/// Products H_0 H_1 ... of at most block_reflections, as I - V' T V with V row by row.
template <class T> class ReflectionBlock {
 public:
  /// For matrices of up to `most_rows` rows.
  ReflectionBlock(Room& own, std::int64_t most_rows)
      : products_(own.take<T>(most_rows * block_reflections)),
        factors_(own.take<T>(most_rows * block_reflections)),
        gram_(own.take<T>(block_reflections * block_reflections)),
        triangle_(own.take<T>(block_reflections * block_reflections)) {}

  /// Takes `count` rows of v: [count, width].
  void set(const T* v, std::int64_t pitch, std::int64_t count, std::int64_t width, const T* taus,
           Multiplier<T>& multiply) {
    v_ = v, pitch_ = pitch, count_ = count, width_ = width;
    clear(gram_, count, count, block_reflections);
    clear(triangle_, count, count, block_reflections);
    multiply.add(count, count, width, {v, pitch, 1}, {v, 1, pitch}, gram_, block_reflections);
    for (std::int64_t j = 0; j < count; ++j) {  // -T, column by column
      at(j, j) = -taus[j];
      for (std::int64_t i = 0; i < j; ++i) {
        T sum = 0;
        for (std::int64_t k = i; k < j; ++k) sum += at(i, k) * gram_[k * block_reflections + j];
        at(i, j) = -taus[j] * sum;
      }
    }
  }
  /// Rows of m: [rows, width] become m H_0 H_1 ..., or, backwards, m ... H_1 H_0.
  void apply(bool backwards, T* m, std::int64_t pitch, std::int64_t rows, Multiplier<T>& multiply) const {
    clear(products_, rows, count_, block_reflections);
    clear(factors_, rows, count_, block_reflections);
    multiply.add(rows, count_, width_, {m, pitch, 1}, {v_, 1, pitch_}, products_, block_reflections);
    const std::int64_t row = backwards ? 1 : block_reflections, column = backwards ? block_reflections : 1;
    multiply.add(rows, count_, count_, {products_, block_reflections, 1}, {triangle_, row, column}, factors_,
                 block_reflections);
    multiply.add(rows, width_, count_, {factors_, block_reflections, 1}, {v_, pitch_, 1}, m, pitch);
  }

 private:
  T& at(std::int64_t i, std::int64_t j) { return triangle_[i * block_reflections + j]; }
  T *products_, *factors_, *gram_, *triangle_;  // of the triangle the negative
  const T* v_ = nullptr;
  std::int64_t pitch_ = 0, count_ = 0, width_ = 0;
};

/// Rows of m: [rows, width], which are near, become m H for one reflection.
template <class T>
void apply_reflection(const T* v, T tau, std::int64_t width, T* m, std::int64_t pitch, std::int64_t rows) {
  if (tau == 0) return;
  const auto& functions = row_functions<T>();
  T products[block_reflections];
  for (std::int64_t first = 0; first < rows; first += block_reflections) {
    const std::int64_t count = std::min(block_reflections, rows - first);
    T* const begin = m + first * pitch;
    functions.dots(begin, pitch, count, v, width, products);
    for (std::int64_t r = 0; r < count; ++r) functions.add(-tau * products[r], v, begin + r * pitch, width);
  }
}

/// Rows `own` of m, of `width` elements, become those of (H_0 H_1 ... H_(count - 1))', of reflections whose v_j is 0
/// before j; up to block_reflections of them all rows are one thread's.
template <class T>
void form_orthogonal(const T* v, std::int64_t v_pitch, std::int64_t count, std::int64_t width, const T* taus, T* m,
                     std::int64_t pitch, Columns own, ReflectionBlock<T>& block, Multiplier<T>& multiply) {
  const std::int64_t rows = own.end;
  if (own.count() == 0) return;
  clear(m + own.begin * pitch, own.count(), width, pitch);
  for (std::int64_t i = own.begin; i < rows; ++i) m[i * pitch + i] = 1;
  if (count <= block_reflections) {
    for (std::int64_t j = count; j-- > 0;) {
      const std::int64_t start = start_before(j);
      apply_reflection(v + j * v_pitch + start, taus[j], width - start, m + j * pitch + start, pitch, rows - j);
    }
    return;
  }
  for (std::int64_t first = (count - 1) / block_reflections * block_reflections; first >= 0;
       first -= block_reflections) {
    const std::int64_t start = start_before(first), row = std::max(first, own.begin);
    if (row >= rows) continue;
    block.set(v + first * v_pitch + start, v_pitch, std::min(block_reflections, count - first), width - start,
              taus + first, multiply);
    block.apply(true, m + row * pitch + start, pitch, rows - row, multiply);
  }
}
/// The rows of form_orthogonal() that are this member's: row i is changed by the blocks up to it.
inline Columns own_rows_to_form(const Team& team, std::int64_t rows, std::int64_t count, std::int64_t width) {
  return own_rows(team, rows, [=](std::int64_t i) {
    const auto changed = static_cast<double>(std::min(i, count) + block_reflections);
    return changed * (static_cast<double>(width) - changed / 2);
  });
}

/// QR of a matrix that is given by its columns, as rows of `columns`: a team's, whose members meet after each panel and
/// after its product with the columns behind, of which each has its own.
template <class T> class ColumnReflections {
 public:
  /// m rows and n columns.
  ColumnReflections(Room& shared, std::int64_t m, std::int64_t n)
      : m_(m),
        n_(n),
        count_(std::min(m, n)),
        width_(padded(m)),
        pitch_(pitch_for<T>(width_)),
        columns_(shared.take<T>(n * pitch_)),
        v_(shared.take<T>(count_ * pitch_)),
        taus_(shared.take<T>(count_)) {}

  T* column(std::int64_t j) const { return columns_ + j * pitch_; }
  std::int64_t pitch() const { return pitch_; }
  std::int64_t width() const { return width_; }

  /// Above the diagonal of the columns, and on it, is R afterwards. Worker 0 has the columns that come next, and goes
  /// on to their panel while others still change columns behind it.
  void factor(ReflectionBlock<T>& block, Multiplier<T>& multiply, const Team& team) const {
    team.meet();
    if (team.worker() == 0) factor_panel(0);
    for (std::int64_t first = 0; first < count_; first += block_reflections) {
      team.meet();
      const std::int64_t count = std::min(block_reflections, count_ - first), behind = first + count;
      if (behind == n_) break;
      const std::int64_t start = start_before(first);
      const Columns own = own_columns_behind(behind, team);
      if (own.count() > 0) {
        block.set(v_ + first * pitch_ + start, pitch_, count, width_ - start, taus_ + first, multiply);
        block.apply(false, column(own.begin) + start, pitch_, own.count(), multiply);
      }
      if (team.worker() == 0 && behind < count_) factor_panel(behind);
    }
    team.meet();
  }
  /// Rows `own` of q: [rows, width] become the first columns of Q, as rows.
  void form(T* q, Columns own, ReflectionBlock<T>& block, Multiplier<T>& multiply) const {
    form_orthogonal(v_, pitch_, count_, width_, taus_, q, pitch_, own, block, multiply);
  }
  /// The rows of q that are this member's.
  Columns own_rows_of_q(std::int64_t rows, const Team& team) const {
    if (count_ <= block_reflections) return team.worker() == 0 ? Columns{0, rows} : Columns{rows, rows};
    return own_rows_to_form(team, rows, count_, width_);
  }
  /// r: [rows, n], rows `pitch` apart, becomes R.
  void write_upper(T* r, std::int64_t rows, std::int64_t pitch) const {
    transpose(columns_, n_, rows, pitch_, r, pitch);
    for (std::int64_t i = 1; i < rows; ++i) std::fill_n(r + i * pitch, std::min(i, n_), T(0));
  }

 private:
  /// The columns from `behind` on that are this member's. A column of the next panel costs worker 0 about
  /// `of_panel` as much as the product does.
  Columns own_columns_behind(std::int64_t behind, const Team& team) const {
    constexpr double of_panel = 4;
    if (team.size() == 1) return {behind, n_};
    const std::int64_t next = std::min(n_ - behind, block_reflections);
    const auto all = static_cast<double>(n_ - behind), panel = of_panel * static_cast<double>(next);
    const auto till = [&](int worker) {
      const double share = (all + panel) * worker / team.size() - panel;
      return worker == team.size() ? n_ : behind + std::clamp(static_cast<std::int64_t>(share), next, n_ - behind);
    };
    return {team.worker() == 0 ? behind : till(team.worker()), till(team.worker() + 1)};
  }
  void factor_panel(std::int64_t first) const {
    const std::int64_t behind = std::min(first + block_reflections, count_);
    for (std::int64_t j = first; j < behind; ++j) factor_column(j, first, behind);
  }
  void factor_column(std::int64_t j, std::int64_t first, std::int64_t behind) const {
    T *const x = column(j), *const v = v_ + j * pitch_;
    taus_[j] = reflect(x[j], x + j + 1, m_ - j - 1);
    std::fill_n(v, j, T(0));
    v[j] = 1;
    std::copy(x + j + 1, x + width_, v + j + 1);
    const std::int64_t start = start_before(first);
    apply_reflection(v + start, taus_[j], width_ - start, column(j + 1) + start, pitch_, behind - j - 1);
  }

  std::int64_t m_, n_, count_, width_, pitch_;
  T *columns_, *v_, *taus_;
};

/// Worker 0 makes all n numbers NaN.
template <class T> void fill_with_nan(T* y, std::int64_t n, const Team& team) {
  if (team.worker() == 0) std::fill_n(y, n, std::numeric_limits<T>::quiet_NaN());
}

/// True if all n numbers are finite.
template <class T> bool are_finite(const T* x, std::int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, x + i, sizeof bits);
    found |= static_cast<Bits>((bits & infinity) == infinity);
  }
  return found == 0;
}

/// The power of two by which numbers up to `largest` are multiplied, so that neither their squares nor those of what
/// matters beside them leave the range of T; 1 for most.
template <class T> T power_into_range(T largest) {
  constexpr int usual = std::numeric_limits<T>::max_exponent / 4;
  if (largest == 0) return 1;
  const int exponent = exponent_of(static_cast<double>(largest));
  if (exponent > -usual && exponent < usual) return 1;
  return static_cast<T>(power_of_two(std::max(-exponent, std::numeric_limits<T>::min_exponent)));
}
template <class T> T largest_size(const T* x, std::int64_t n) {
  T largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

/// The order of values, ascending or descending; of equal ones the first comes first.
template <class V> void order_by(const V* values, std::int64_t n, bool ascending, std::int64_t* order) {
  std::iota(order, order + n, 0);
  std::sort(order, order + n, [=](std::int64_t i, std::int64_t j) {
    if (values[i] == values[j]) return i < j;
    return ascending ? values[i] < values[j] : values[i] > values[j];
  });
}

/// Rotations of neighbouring rows that wait to be applied together, to strips of columns that stay near. Worker 0 of a
/// team finds them.
template <class T> class WaitingRotations {
 public:
  /// Waits for rotations of matrices of n rows.
  WaitingRotations(Room& shared, std::int64_t n)
      : n_(n),
        c_(shared.take<T>(most_sweeps * n)),
        s_(shared.take<T>(most_sweeps * n)),
        sweeps_(shared.take<Sweep>(most_sweeps)),
        paired_(shared.take<std::int64_t>(1)) {}
  bool is_full() const { return count_ == most_sweeps; }
  /// A sweep over rotations first, first + 1, ..., whose cosines and sines are to be set.
  void begin(std::int64_t first, std::int64_t count, bool ascending) {
    sweeps_[count_] = {first, count, count_ * n_ + first, ascending};
    ++count_;
  }
  void set(std::int64_t i, double c, double s) { put((count_ - 1) * n_ + i, static_cast<T>(c), static_cast<T>(s)); }
  /// Ends the waiting: every member may apply what has waited.
  void close() {
    pair_sweeps();
    *paired_ = count_, count_ = 0;
  }
  /// Applies what has waited to columns `own` of rows.
  void apply(T* rows, std::int64_t pitch, Columns own) const {
    if (own.count() > 0) row_functions<T>().rotate(rows + own.begin, pitch, own.count(), sweeps_, *paired_, c_, s_);
  }

 private:
  static constexpr std::int64_t most_sweeps = 32;

  void put(std::int64_t place, T c, T s) { c_[place] = c, s_[place] = s; }
  /// Neighbours that are nearly over the same rotations get all of both, so that they are applied at once: those that
  /// they lack do nothing.
  void pair_sweeps() {
    for (std::int64_t k = 0; k + 1 < count_; ++k) {
      const Sweep a = sweeps_[k], b = sweeps_[k + 1];
      const std::int64_t first = std::min(a.first, b.first), end = std::max(a.first + a.count, b.first + b.count);
      if (a.ascending != b.ascending || 4 * (end - first) > 5 * std::max(a.count, b.count) + 16) continue;
      extend(k, first, end), extend(k + 1, first, end);
      ++k;
    }
  }
  void extend(std::int64_t k, std::int64_t first, std::int64_t end) {
    Sweep& sweep = sweeps_[k];
    for (std::int64_t i = first; i < sweep.first; ++i) put(k * n_ + i, 1, 0);
    for (std::int64_t i = sweep.first + sweep.count; i < end; ++i) put(k * n_ + i, 1, 0);
    sweep = {first, end - first, k * n_ + first, sweep.ascending};
  }

  std::int64_t n_, count_ = 0;
  T *c_, *s_;
  Sweep* sweeps_;
  std::int64_t* paired_;  // sweeps that are to be applied
};

/// Worker 0 calls iterate(flush), where flush() lets all members apply what waits: close() ends the waiting, apply()
/// is each member's part. `ended`: shared.
template <class Iterate, class Close, class Apply>
void iterate_together(const Team& team, std::int64_t* ended, const Iterate& iterate, const Close& close,
                      const Apply& apply) {
  if (team.worker() != 0) {
    for (team.meet(); *ended == 0; team.meet()) {
      apply();
      team.meet();
    }
    return;
  }
  *ended = 0;
  iterate([&] {
    close();
    team.meet();
    apply();
    team.meet();
  });
  *ended = 1;
  team.meet();
}

}  // namespace gradus::library::factors
