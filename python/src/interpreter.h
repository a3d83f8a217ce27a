/// The interpreter as C++ sees it: who holds the GIL (the lock that lets one thread run Python), and objects of Python
/// that C++ keeps. The GIL is given up wherever the engine computes, waits, joins or destroys: a thread that waits
/// for another one while it holds the GIL may wait for ever.
#pragma once
#include <nanobind/nanobind.h>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace gradus::python {

namespace nb = nanobind;

/// In its lifetime this thread, which holds the GIL, does not hold it.
class WithoutGil {
 public:
  [[nodiscard]] WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

/// In its lifetime this thread holds the GIL, whichever thread it is.
class WithGil {
 public:
  [[nodiscard]] WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;

 private:
  const bool gave_up_;
  const PyGILState_STATE state_;
};

/// From now on the engine gives up the GIL around long work of a thread that holds it, wherever that begins: an op that
/// is recorded, or a Variable that is read, may have to compute what waits.
void give_up_gil_for_long_work();

/// work() without the GIL.
template <class Work> decltype(auto) without_gil(Work&& work) {
  const WithoutGil gil;
  return std::forward<Work>(work)();
}

/// Drops a reference that this thread owns, now or soon: the calling thread may hold locks of the engine, so it waits
/// for no GIL. The objects are dropped by the next thread that keeps an object, or by the main thread between two
/// instructions of Python.
void drop_soon(PyObject* object) noexcept;
/// Drops what drop_soon() left. The GIL is held.
void drop_left() noexcept;
/// Python comes to its end, on this thread, which holds the GIL. From now on no object is dropped, and other threads
/// that want the GIL stop.
void end_of_python() noexcept;

/// An object of Python that C++ keeps. Copies share it; the last one may go on any thread, with or without the GIL.
class Held {
 public:
  Held() = default;
  /// The GIL is held.
  explicit Held(nb::object object);
  /// The object, for a thread that holds the GIL.
  nb::handle get() const { return object_.get(); }
  explicit operator bool() const { return static_cast<bool>(object_); }

 private:
  std::shared_ptr<PyObject> object_;
};

/// An exception of the library that came out of Python's code. It is what it was for the engine, and goes back to
/// Python as the exception that it was there, with its traceback.
class PassedThroughPython {
 public:
  explicit PassedThroughPython(Held exception) : exception_(std::move(exception)) {}
  virtual ~PassedThroughPython() = default;
  /// Sets it as the exception that is raised.
  void restore() const;

 private:
  Held exception_;
};

/// Throws what Python has raised. An exception of the library is thrown as one; others stay nb::python_error, which no
/// room of the library catches for good.
[[noreturn]] void throw_raised(nb::python_error& raised);

/// work(), which runs Python, on a thread that may not hold the GIL.
template <class Work> auto in_python(Work&& work) -> std::invoke_result_t<Work&> {
  const WithGil gil;
  try {
    return work();
  } catch (nb::python_error& raised) { throw_raised(raised); }
}

/// Raises KeyboardInterrupt if Ctrl-C came. The GIL is held.
void check_signals();

}  // namespace gradus::python
