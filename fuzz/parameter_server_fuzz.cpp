/// Fuzz target: questions at a parameter server and at the desk of steps, and what a server finds on its disk. Every
/// question gets one answer, and what is no program or no checkpoint is an Error.
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/distribute/parameter_servers/parameter_questions.h"
#include "gradus/distribute/parameter_servers/parameter_store.h"
#include "gradus/distribute/parameter_servers/step_desk.h"

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

/// Of a process that has not joined.
void ask_desk(std::string_view bytes) {
  gradus::StepDesk desk({.ranks = 1, .servers = 1});
  std::uint64_t call = 1;
  for_each_part(bytes, [&](std::string_view part) { ask(desk, call++, part); });
}

/// Of a worker, "inc0", and a server, "inc1", that have joined, while there are steps to do. Who waits stays; after a
/// part that is empty, who asked before it is gone.
void ask_joined_desk(std::string_view bytes) {
  gradus::StepDesk desk({.ranks = 1, .servers = 1});
  std::vector<std::shared_ptr<std::atomic<int>>> answers;
  const auto ask = [&](std::string_view question) {
    answers.push_back(std::make_shared<std::atomic<int>>(0));
    desk.ask(answers.size(), question, [count = answers.back()](std::string_view) { ++*count; });
  };
  const auto expect_answers = [&] {
    for (const auto& count : answers)
      if (*count != 1) std::abort();
  };
  for (const std::uint64_t seat : {0, 1}) {
    MessageWriter join;
    join.integer(static_cast<std::uint64_t>(gradus::StepQuestion::join))
        .integer(seat)
        .words(seat == 0 ? "inc0" : "inc1");
    ask(join.integer(1).integer(1).words("").words("").words("host").integer(7).take());
  }
  expect_answers();
  for (const std::uint64_t step : {0, 1, 2}) desk.open(step, step / 2, 7);
  for_each_part(bytes, [&](std::string_view part) {
    if (!part.empty()) return ask(part);
    if (*answers.back() > 0) return;
    desk.left(answers.size());
    if (*answers.back() == 0) ++*answers.back();
  });
  desk.close("all is done", true);
  expect_answers();
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
  constexpr void (*parts[])(std::string_view) = {ask_store, ask_desk, read_program, read_log, ask_joined_desk};
  try {
    parts[data[0] % std::size(parts)](bytes);
  } catch (const gradus::Error&) {}
  return 0;
}
