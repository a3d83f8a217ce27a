/// repeated: a function whose compiled forms outlive a call of minimize() or least_squares(), for runs from several
/// starting points or with other data. A run of a small problem takes microseconds then.
///
///   Variable y(first_measurements);
///   const auto residuals = repeated([&](Tensor p) { return p[0] * exp(-p[1] * t) - y; });
///   for (const Tensor& measured : all) { y.assign(measured); fits.push_back(least_squares(residuals, start)); }
#pragma once
#include <concepts>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace gradus {

/// A function with its compiled forms; made by repeated(). Copies share both.
template <class F> class Repeated {
 public:
  explicit Repeated(F f) : core_(std::make_shared<Core>(std::move(f))) {}
  /// The function itself.
  template <class... X>
    requires std::invocable<F&, X...>
  decltype(auto) operator()(X&&... x) const {
    return core_->f(std::forward<X>(x)...);
  }

  // For the rooms of the library.
  F& function() const { return core_->f; }
  /// The object that is kept as `key`; `make` makes it at first.
  template <class T> std::shared_ptr<T> kept(const std::string& key, const auto& make) const {
    std::lock_guard lock(core_->guard);
    std::shared_ptr<void>& place = core_->kept[key];
    if (!place) place = make();
    return std::static_pointer_cast<T>(place);
  }

 private:
  struct Core {
    explicit Core(F given) : f(std::move(given)) {}
    F f;
    std::mutex guard;  // of what follows
    std::map<std::string, std::shared_ptr<void>> kept;
  };
  std::shared_ptr<Core> core_;
};

/// f for several calls of minimize() and least_squares(): calls with parameters of equal structure, dtypes and shapes
/// share the compiled form. As with function(), C++ state that f reads is that of the first call: hold data that change
/// in Variables.
template <class F> Repeated<F> repeated(F f) { return Repeated<F>(std::move(f)); }

namespace detail {

template <class F> constexpr bool is_repeated = false;
template <class F> constexpr bool is_repeated<Repeated<F>> = true;

}  // namespace detail
}  // namespace gradus
