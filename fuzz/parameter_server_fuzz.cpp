/// Fuzz target: questions at a parameter server and at the desk of steps, and what a server finds on its disk. Every
/// question gets an answer, and what is no program or no checkpoint is an Error.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include "gradus/base/error.h"
#include "gradus/distribute/parameter_questions.h"
#include "gradus/distribute/parameter_store.h"
#include "gradus/distribute/step_desk.h"

namespace {

using gradus::MessageWriter;
using gradus::ParameterQuestion;

/// Questions lie one behind the other, each after its length in two bytes.
template <class Take> void for_each_part(std::string_view bytes, Take take) {
  while (bytes.size() >= 2) {
    const std::size_t wanted = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
    const std::size_t length = std::min(wanted, bytes.size() - 2);
    take(bytes.substr(2, length));
    bytes.remove_prefix(2 + length);
  }
}

void ask(gradus::RpcHandler& handler, std::uint64_t call, std::string_view bytes) {
  bool has_answer = false;
  handler.ask(call, bytes, [&](std::string_view) { has_answer = true; });
  if (!has_answer) handler.left(call);
}

/// After a beginning as it should be, so that more than the first check is reached.
void ask_store(std::string_view bytes) {
  gradus::ParameterStore store({.hold = std::chrono::milliseconds(1)});
  const auto question = [](ParameterQuestion kind) {
    MessageWriter out;
    out.integer(static_cast<std::uint64_t>(kind)).words("run");
    return out;
  };
  ask(store, 1, question(ParameterQuestion::begin).integer(1).take());
  ask(store, 2, question(ParameterQuestion::cells).integer(1).integer(0).words("w").words("f32[2]").take());
  std::uint64_t call = 3;
  for_each_part(bytes, [&](std::string_view part) { ask(store, call++, part); });
}

void ask_desk(std::string_view bytes) {
  gradus::StepDesk desk({.ranks = 1, .servers = 1});
  std::uint64_t call = 1;
  for_each_part(bytes, [&](std::string_view part) { ask(desk, call++, part); });
}

void read_program(std::string_view bytes) {
  const gradus::ParameterProgram read(bytes, [](std::uint64_t) { return gradus::Spec{gradus::f32, {2}}; });
  if (read.push_bytes() > std::size_t{1} << 62) std::abort();
}

void read_log(std::string_view bytes) {
  static const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("gradus_parameter_fuzz_" + std::to_string(getpid()));
  {
    gradus::ParameterJournal journal(directory);
    journal.reset();
    for_each_part(bytes, [&](std::string_view part) { journal.append(part); });
  }
  const gradus::ParameterStore store({.checkpoints = directory});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 1 << 16) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr void (*parts[])(std::string_view) = {ask_store, ask_desk, read_program, read_log};
  try {
    parts[data[0] % 4](bytes);
  } catch (const gradus::Error&) {}
  return 0;
}
