/// What errors say: for tests of users' mistakes.
#pragma once
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include "gradus/base/error.h"

namespace gradus {

/// The message of the E that f() throws; a failure of the test if it throws none.
template <class E = Error> std::string error_of(auto f) {
  try {
    f();
  } catch (const E& error) { return error.what(); }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

/// f() throws an E that says all of these.
template <class E> void expect_error(auto f, std::initializer_list<const char*> parts) {
  const std::string message = error_of<E>(f);
  for (const char* part : parts) expect_says(message, part);
}

}  // namespace gradus
