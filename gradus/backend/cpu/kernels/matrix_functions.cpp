/// LU with its exchanges of rows, pseudoinverses, and exponentials.
#include <numeric>
#include "gradus/backend/cpu/kernels/decompositions.h"
#include "gradus/backend/cpu/kernels/eigenvalues.h"
#include "gradus/backend/cpu/kernels/elimination.h"

namespace gradus::library::factors {
namespace {

// LU.

template <class T> void write_lu(const SmallElimination<T>& e, std::int64_t n, T* y) {
  copy_rows(e.row(0), n, n, e.pitch(), y, n);
  const Triangle<T> lower = e.lower();
  for (std::int64_t i = 1; lower.a && i < n; ++i)
    for (std::int64_t j = 0; j < i; ++j) y[i * n + j] = lower.a[i * lower.row + j * lower.column];
}
template <class T>
void write_order(const std::int64_t* pivots, std::int64_t n, std::int64_t panel, std::int64_t* order, T* y) {
  find_order(pivots, n, panel, order);
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(order[i]);
}

// A pseudoinverse: V S^+ U', of which S^+ U' or V S^+ is made in the place of one of the factors.

template <class T> struct PinvRoom {
  PinvRoom(const MatrixSize& size, Room& shared, Room& own)
      : factors(shared.take<T>((size.m + size.n + 1) * size.least())), multiply(own, std::max(size.m, size.n)) {}
  T* factors;
  Multiplier<T> multiply;
};

/// s[i] becomes 1 / s[i], or 0 where its size is at most `threshold` of the largest one.
template <class T> void invert_values(T* s, std::int64_t k, double threshold) {
  const double least = threshold * static_cast<double>(largest_size(s, k));
  for (std::int64_t i = 0; i < k; ++i) s[i] = static_cast<double>(std::abs(s[i])) > least ? 1 / s[i] : T(0);
}

// Exponentials.

/// Padé's approximants of exp (Higham 2005): up to which norm one of so many terms is right, for each type.
struct Approximant {
  int degree;
  double most_f32, most_f64;  // negative: not used
  double coefficients[14];
};
constexpr Approximant approximants[] = {
    {3, 4.258730016922831e-1, 1.495585217958292e-2, {120, 60, 12, 1}},
    {5, 1.880152677804762, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
    {7, 3.925724783138660, 9.504178996162932e-1, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {9,
     -1,
     2.097847961257068,
     {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
    {13,
     -1,
     5.371920351148152,
     {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
      670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}}};

template <class T> struct ExpRoom {
  ExpRoom(std::int64_t n, Room& all)
      : scaled(all.take<T>(n * n)),
        odd(all.take<T>(n * n)),
        even(all.take<T>(n * n)),
        work(all.take<T>(n * n)),
        multiply(all, n) {
    for (T*& power : powers) power = all.take<T>(n * n);
    const RoomBytes of_solve = Ways<T>::room_for_solve({n, n});
    shared = all.take<std::byte>(of_solve.shared), own = all.take<std::byte>(of_solve.own);
  }
  T *scaled, *odd, *even, *work;
  T* powers[4];  // 2, 4, 6 and 8
  Multiplier<T> multiply;
  std::byte *shared, *own;
};

template <class T> class Exponential {
 public:
  Exponential(std::int64_t n, Room& own) : n_(n), room_(n, own) {}

  void run(const T* a, T* y) {
    const double norm = norm_of(a);
    int halvings = 0;
    const Approximant& of = choose(norm, halvings);
    const T scale = static_cast<T>(power_of_two(-halvings));
    for (std::int64_t i = 0; i < n_ * n_; ++i) room_.scaled[i] = a[i] * scale;
    find_powers(of.degree);
    if (of.degree == 13) find_terms_of_13(of.coefficients);
    else find_terms(of);
    // y = (even - odd)^-1 (even + odd)
    for (std::int64_t i = 0; i < n_ * n_; ++i) {
      const T u = room_.odd[i], v = room_.even[i];
      room_.even[i] = v - u, room_.odd[i] = v + u;
    }
    Ways<T>::solve({n_, n_}, room_.even, room_.odd, y, Room(room_.shared), Room(room_.own), {});
    for (; halvings > 0; --halvings) {
      std::copy_n(y, n_ * n_, room_.work);
      multiply(room_.work, room_.work, y);
    }
  }

 private:
  static double most(const Approximant& of) { return sizeof(T) == 8 ? of.most_f64 : of.most_f32; }

  /// The largest sum of sizes of a column.
  double norm_of(const T* a) const {
    double largest = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < n_; ++i) sum += std::abs(static_cast<double>(a[i * n_ + j]));
      largest = std::max(largest, sum);
    }
    return largest;
  }
  static const Approximant& choose(double norm, int& halvings) {
    const Approximant* last = approximants;
    for (const Approximant& each : approximants) {
      if (most(each) < 0) continue;
      last = &each;
      if (norm <= most(each)) return each;
    }
    halvings = exponent_of(norm / most(*last));
    return *last;
  }
  void multiply(const T* a, const T* b, T* c) {
    std::fill_n(c, n_ * n_, T(0));
    room_.multiply.add(n_, n_, n_, {a, n_, 1}, {b, n_, 1}, c, n_);
  }
  void find_powers(int degree) {
    T** const powers = room_.powers;
    multiply(room_.scaled, room_.scaled, powers[0]);
    const int count = degree == 13 ? 3 : (degree - 1) / 2;
    for (int k = 1; k < count; ++k) multiply(powers[k - 1], powers[0], powers[k]);
  }
  /// to = the sum of c[2 k] * power 2 k, for k from `first` to `last`; power 0 is the unit matrix.
  void add_powers(const double* c, int first, int last, T* to) const {
    for (int k = std::max(first, 1); k <= last; ++k)
      for (std::int64_t i = 0; i < n_ * n_; ++i) {
        const T term = static_cast<T>(c[2 * k]) * room_.powers[k - 1][i];
        to[i] = k == std::max(first, 1) ? term : to[i] + term;
      }
    for (std::int64_t i = 0; first == 0 && i < n_; ++i) to[i * n_ + i] += static_cast<T>(c[0]);
  }
  void find_terms(const Approximant& of) {
    add_powers(of.coefficients + 1, 0, (of.degree - 1) / 2, room_.work);
    multiply(room_.scaled, room_.work, room_.odd);
    add_powers(of.coefficients, 0, (of.degree - 1) / 2, room_.even);
  }
  /// Power 6 times the upper terms, plus the lower ones.
  void find_terms_of_13(const double* c) {
    T* const upper = room_.powers[3];
    const auto terms = [&](const double* of, T* to) {
      add_powers(of + 6, 1, 3, upper);
      multiply(room_.powers[2], upper, to);
      add_powers(of, 0, 3, upper);
      for (std::int64_t i = 0; i < n_ * n_; ++i) to[i] += upper[i];
    };
    terms(c + 1, room_.work);
    multiply(room_.scaled, room_.work, room_.odd);
    terms(c, room_.even);
  }

  std::int64_t n_;
  ExpRoom<T> room_;
};

}  // namespace

template <class T> RoomBytes Decompositions<T>::room_for_lu(const MatrixSize& size, const Wanted&) {
  return bytes_taken([&](Room& shared, Room& own) {
    own.take<std::int64_t>(size.n);
    if (size.n <= block_rows) {
      SmallElimination<T>(own, size.n, size.n, true);
    } else {
      Elimination<T>(shared, size.n, size.n);
      Multiplier<T>(own, size.n);
    }
  });
}
template <class T>
void Decompositions<T>::lu(const MatrixSize& size, const Wanted&, const T* a, T* y, Room shared, Room own,
                           const Team& team) {
  const std::int64_t n = size.n;
  auto* const order = own.take<std::int64_t>(n);
  if (!are_finite(a, n * n)) return fill_with_nan(y, n * n + n, team);
  if (n <= block_rows) {
    const SmallElimination<T> e(own, n, n, true);
    e.set(a);
    e.run();
    write_lu(e, n, y);
    return write_order(e.pivots(), n, n, order, y + n * n);
  }
  const Elimination<T> e(shared, n, n);
  Multiplier<T> multiply(own, n);
  e.set(a, team);
  e.run(true, multiply, team);
  const std::int64_t begin = n * team.worker() / team.size(), end = n * (team.worker() + 1) / team.size();
  copy_rows(e.row(begin), end - begin, n, e.pitch(), y + begin * n, n);
  if (team.worker() == 0) write_order(e.pivots(), n, panel_columns(n), order, y + n * n);
}

template <class T> RoomBytes Decompositions<T>::room_for_pinv(const MatrixSize& size, const Wanted& wanted) {
  const RoomBytes room = bytes_taken([&](Room& shared, Room& own) { PinvRoom<T>(size, shared, own); });
  const RoomBytes of_factors = (wanted.symmetric ? room_for_eigh : room_for_svd)(size, {});
  return {room.shared + of_factors.shared, room.own + of_factors.own};
}
template <class T>
void Decompositions<T>::pinv(const MatrixSize& size, const Wanted& wanted, const T* a, T* y, Room shared, Room own,
                             const Team& team) {
  const auto [m, n] = size;
  const std::int64_t k = size.least();
  PinvRoom<T> room(size, shared, own);
  T *const u = room.factors, *const s = u + m * k, *const v = wanted.symmetric ? u : s + k;
  (wanted.symmetric ? eigh : svd)(size, {}, a, u, shared, own, team);
  team.meet();
  const bool is_nan = k > 0 && std::isnan(s[0]);
  if (is_nan) return fill_with_nan(y, n * m, team);
  team.meet();  // all have seen it
  if (team.worker() == 0) invert_values(s, k, wanted.threshold);
  team.meet();
  T* const scaled = wanted.symmetric ? s + k : v;
  const std::int64_t begin = n * team.worker() / team.size(), end = n * (team.worker() + 1) / team.size();
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t j = 0; j < k; ++j) scaled[i * k + j] = v[i * k + j] * s[j];
  std::fill_n(y + begin * m, (end - begin) * m, T(0));
  room.multiply.add(end - begin, m, k, {scaled + begin * k, k, 1}, {u, 1, k}, y + begin * m, m);
}

template <class T> RoomBytes Decompositions<T>::room_for_matrix_exp(const MatrixSize& size, const Wanted&) {
  return bytes_taken([&](Room&, Room& own) { Exponential<T>(size.n, own); });
}
template <class T>
void Decompositions<T>::matrix_exp(const MatrixSize& size, const Wanted&, const T* a, T* y, Room, Room own,
                                   const Team&) {
  const std::int64_t n = size.n;
  if (!are_finite(a, n * n)) std::fill_n(y, n * n, std::numeric_limits<T>::quiet_NaN());
  else Exponential<T>(n, own).run(a, y);
}

#define GRADUS_WAYS_OF(name)                                                                                       \
  template RoomBytes Decompositions<float>::room_for_##name(const MatrixSize&, const Wanted&);                     \
  template RoomBytes Decompositions<double>::room_for_##name(const MatrixSize&, const Wanted&);                    \
  template void Decompositions<float>::name(const MatrixSize&, const Wanted&, const float*, float*, Room, Room,    \
                                            const Team&);                                                          \
  template void Decompositions<double>::name(const MatrixSize&, const Wanted&, const double*, double*, Room, Room, \
                                             const Team&)
GRADUS_WAYS_OF(lu);
GRADUS_WAYS_OF(pinv);
GRADUS_WAYS_OF(matrix_exp);
#undef GRADUS_WAYS_OF

}  // namespace gradus::library::factors
