/// The protocol of a parameter server, questions and answers: words of parameter_store.cpp and parameter_client.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gradus {

/// Every question begins with its kind and the run that it belongs to.
enum class ParameterQuestion : std::uint64_t {
  begin,    // lag: how many versions before the newest are kept
  cells,    // count, then number, name and spec of each Variable
  set,      // a piece of the value of Variable `subject`, which it gets after `program` steps
  program,  // a piece of program `subject`
  push,     // a piece of the push of step `subject` for `program`
  pull,     // program (every_cell: all Variables), version, offset, length: these bytes of the values, contiguous
};
/// A piece: sender, sequence, subject, program, total, offset, bytes.

enum class ParameterAnswer : std::uint64_t {
  done,     // and the bytes that were asked for
  wait,     // ask again
  failed,   // and why
  unknown,  // it knows nothing of this run
  again,    // the upload, from its first piece on: the server has come back without the others
};

inline constexpr std::uint64_t every_cell = 0;
inline constexpr std::size_t most_piece = std::size_t{1000} << 10, most_pulled = std::size_t{4} << 20;
inline constexpr std::size_t most_run = 64, most_sender = 96, most_name = 4096;

}  // namespace gradus
