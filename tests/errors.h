/// What errors say: for tests of users' mistakes.
#pragma once
#include <gtest/gtest.h>
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

}  // namespace gradus
