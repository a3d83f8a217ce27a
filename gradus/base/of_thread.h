/// Objects that a thread keeps for itself from use to use.
#pragma once
#include <pthread.h>
#include <utility>
#include "gradus/base/error.h"

namespace gradus {

/// One T per thread that asks. It costs a load, whereas a thread_local object with a destructor costs a call and a
/// check. It outlives all of these, so that their destructors may still use it. A thread's own is destroyed after they
/// have run. The main thread's is never destroyed, since statics are destroyed later. A request after that, as from
/// another destructor, gets a new one, which is destroyed in turn.
template <class T> class OfThread {
 public:
  static T& get() { return own_ ? *own_ : make(); }

  /// In its lifetime the thread's own is a new one.
  class Another {
   public:
    [[nodiscard]] Another() : before_(std::exchange(own_, &other_)) {}
    ~Another() { own_ = before_; }
    Another(const Another&) = delete;

   private:
    T other_;
    T* const before_;
  };

 private:
  [[gnu::noinline]] static T& make() {
    static const pthread_key_t key = [] {
      pthread_key_t made;
      internal_check(pthread_key_create(&made, destroy) == 0, "no more thread-specific data");
      return made;
    }();
    own_ = new T;
    internal_check(pthread_setspecific(key, own_) == 0, "no memory for thread-specific data");
    return *own_;
  }
  static void destroy(void* own) {
    own_ = nullptr;
    delete static_cast<T*>(own);
  }

  [[gnu::tls_model("initial-exec"), gnu::visibility("default")]] static inline constinit thread_local T* own_ = nullptr;
};

}  // namespace gradus
