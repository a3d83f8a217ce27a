/// The header in C of an object file: the struct of the state, the functions, and the meaning of its numbers.
#pragma once
#include <string>
#include <vector>
#include "gradus/backend/cpu/object/step_maker.h"
#include "gradus/backend/object.h"

namespace gradus::object {

/// A C identifier for a name such as "dense/kernel"; `used` has the taken ones.
std::string identifier_of(const std::string& name, std::vector<std::string>& used);

struct HeaderText {
  const ObjectSteps& all;
  const StatePlaces& places;
  std::int64_t workspace_bytes = 0, bytes = 0;
  std::vector<std::string> failures;  // the messages of failures 1, 2, ...
  std::string instruction_set;
};
std::string to_c(const HeaderText& header);

}  // namespace gradus::object
