/// What a report says of one unit of execution.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace gradus {

struct Kernel {
  std::string name;              // "add+relu"
  std::vector<std::string> ops;  // as in the graph's text form
  std::size_t bytes_read = 0, bytes_written = 0;
  double flops = 0;
};

}  // namespace gradus
