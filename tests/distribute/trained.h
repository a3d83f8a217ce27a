/// What trainings on strategies leave, for comparing bits.
#pragma once
#include <gtest/gtest.h>
#include <string>
#include <vector>
#include "gradus/gradus.h"

namespace gradus {

/// So many logical devices of the processor.
inline std::vector<Device> devices(int n) {
  std::vector<Device> all;
  for (int i = 0; i < n; ++i) all.push_back(cpu(i));
  return all;
}

/// What a training leaves: loss of the last step, and all variables.
struct Trained {
  double loss = 0;
  std::vector<Tensor> variables = {};
};

inline void expect_same_bits(const Trained& a, const Trained& b, const std::string& what) {
  EXPECT_EQ(a.loss, b.loss) << what;
  ASSERT_EQ(a.variables.size(), b.variables.size()) << what;
  for (std::size_t i = 0; i < a.variables.size(); ++i)
    EXPECT_TRUE(bitwise_equal(a.variables[i], b.variables[i])) << what << ", variable " << i;
}

inline Trained values_of(const Variables& variables, double loss) {
  Trained trained{loss};
  for (const Variable& variable : variables) trained.variables.push_back(variable.value());
  return trained;
}

}  // namespace gradus
