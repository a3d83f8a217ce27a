#include "tests/distribute/refused_threads.h"
#include <dlfcn.h>
#include <pthread.h>
#include <atomic>
#include <cerrno>
#include <limits>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRADUS_REFUSES_THREADS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRADUS_REFUSES_THREADS 0
#endif
#endif
#ifndef GRADUS_REFUSES_THREADS
#define GRADUS_REFUSES_THREADS 1
#endif

namespace gradus {
namespace {

std::atomic<int> threads_left = std::numeric_limits<int>::max();

}  // namespace

bool can_refuse_threads() { return GRADUS_REFUSES_THREADS != 0; }
void allow_threads(int count) { threads_left = count; }

}  // namespace gradus

#if GRADUS_REFUSES_THREADS
/// Replaces the system's function for all libraries of this program, since a program's symbols take precedence over
/// theirs.
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*body)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  int left = gradus::threads_left;
  while (left > 0 && !gradus::threads_left.compare_exchange_weak(left, left - 1)) {}
  return left > 0 ? create(thread, attributes, body, argument) : EAGAIN;
}
#endif
