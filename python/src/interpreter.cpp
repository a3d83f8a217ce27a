// Objects of Python that C++ keeps, and their end: on whichever thread that comes, no thread waits for the GIL.
#include "python/src/interpreter.h"
#include <unistd.h>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>
#include "gradus/base/long_work.h"
#include "python/src/held_functions.h"

#ifdef Py_LIMITED_API
extern "C" [[gnu::weak]] int PyGILState_Check(void);  // Pythons have it, though the stable ABI does not promise it
#endif

namespace gradus::python {
namespace {

/// References that are left to be dropped by a thread that holds the GIL.
struct LeftObjects {
  std::mutex guard;
  std::vector<PyObject*> objects;
  bool keeps_all = false;
};

LeftObjects& left_objects() {
  static auto* const all = new LeftObjects;  // threads of the engine may outlive static objects
  return *all;
}

/// True while this thread has given up the GIL, or has never had it. Python does not say that to modules that fit each
/// of its versions.
thread_local bool has_given_up = false;

/// When Python ends, it ends threads that want the GIL by unwinding them, which C++ does not survive. So they stop
/// here.
struct End {
  std::atomic<bool> has_begun{false};
  std::atomic<int> waiting{0};  // threads between their look at has_begun and the GIL
  std::thread::id thread = {};  // which ends Python
};
End the_end;

void stop_at_end() {
  if (!the_end.has_begun.load() || std::this_thread::get_id() == the_end.thread) return;
  the_end.waiting.fetch_sub(1);
  while (true) ::pause();
}

/// take() takes the GIL.
template <class Take> auto taking_gil(const Take& take) {
  the_end.waiting.fetch_add(1);
  stop_at_end();
  if constexpr (std::is_void_v<decltype(take())>) {
    take();
    the_end.waiting.fetch_sub(1);
  } else {
    const auto taken = take();
    the_end.waiting.fetch_sub(1);
    return taken;
  }
}

bool holds_gil() {
#ifdef Py_LIMITED_API
  if (!PyGILState_Check) return true;
#endif
  return PyGILState_Check() != 0;
}

/// The state that Python has of a thread of the engine. It is kept from the first time that the thread runs Python
/// until it ends: Python maps memory for each new one, which takes as long as ten elements of a generator.
class KeptState {
 public:
  ~KeptState() {
    if (!is_kept_ || the_end.has_begun.load()) return;
    const PyGILState_STATE state = taking_gil(PyGILState_Ensure);
    PyGILState_Release(PyGILState_LOCKED);  // what keep() took
    PyGILState_Release(state);
  }
  /// Before the thread takes the GIL: true if Python has not seen it before.
  bool is_new() { return is_new_ = !PyGILState_GetThisThreadState(); }
  /// With the GIL: a state that is new is kept.
  void keep() {
    if (!is_new_) return;
    PyGILState_Ensure();
    is_kept_ = true;
  }

 private:
  bool is_new_ = false;
  bool is_kept_ = false;
};
thread_local KeptState kept_state;

void* give_up_for_work() {
  if (has_given_up || !PyGILState_GetThisThreadState()) return nullptr;
  if (!holds_gil()) return nullptr;  // another module gave it up
  return new WithoutGil;
}

void end_work(void* given_up) { delete static_cast<WithoutGil*>(given_up); }

int drop_left_between_instructions(void*) {
  drop_left();
  return 0;
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) { has_given_up = true; }

WithoutGil::~WithoutGil() {
  taking_gil([this] { PyEval_RestoreThread(state_); });
  has_given_up = false;
}

WithGil::WithGil() : gave_up_(kept_state.is_new() || has_given_up), state_(taking_gil(PyGILState_Ensure)) {
  kept_state.keep();
  has_given_up = false;
}

WithGil::~WithGil() {
  PyGILState_Release(state_);
  has_given_up = gave_up_;
}

void give_up_gil_for_long_work() { set_long_work_hooks({give_up_for_work, end_work}); }

void drop_soon(PyObject* object) noexcept {
  if (!object) return;
  LeftObjects& left = left_objects();
  bool is_first = false;
  {
    const std::lock_guard lock(left.guard);
    if (left.keeps_all) return;
    is_first = left.objects.empty();
    left.objects.push_back(object);
  }
  // Python has room for few of these calls. One that finds no room is made up for by the next Held.
  if (is_first) Py_AddPendingCall(drop_left_between_instructions, nullptr);
}

void drop_left() noexcept {
  std::vector<PyObject*> objects;
  {
    LeftObjects& left = left_objects();
    const std::lock_guard lock(left.guard);
    objects.swap(left.objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

void end_of_python() noexcept {
  the_end.thread = std::this_thread::get_id();
  the_end.has_begun.store(true);
  while (the_end.waiting.load() > 0) {  // they get it, and stop when they want it again
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::yield();
    PyEval_RestoreThread(state);
  }
  drop_left();
  LeftObjects& left = left_objects();
  const std::lock_guard lock(left.guard);
  left.keeps_all = true;
}

Held::Held(nb::object object) {
  drop_left();
  object_ = {object.release().ptr(), drop_soon};
  HeldObjects::note(object_);
}

namespace {
thread_local HeldObjects* noting = nullptr;
}

HeldObjects::HeldObjects() : before_(noting) { noting = this; }

HeldObjects::~HeldObjects() { noting = before_; }

void HeldObjects::note(const std::shared_ptr<PyObject>& object) {
  if (noting) noting->all_.push_back(object);
}

void PassedThroughPython::restore() const {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception_.get().ptr())), exception_.get().ptr());
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace gradus::python
