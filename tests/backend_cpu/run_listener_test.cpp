/// Who listens to a run: it is told of each output once, when all of it is there.
#include "gradus/backend/run_listener.h"
#include <gtest/gtest.h>
#include <cstring>
#include "gradus/backend/cpu/run/program.h"
#include "gradus/graph/graph.h"
#include "tests/errors.h"
#include "tests/threads.h"

namespace gradus::run_listener_test {
namespace {

// Products, chains, sums; an output that is an input, and one that is another output.
constexpr const char* written = R"(%0 = input : f32[256,256]
%1 = input : f32[256,256]
%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : f32[256,256]
%3 = exp %2 : f32[256,256]
%4 = matmul{transpose_a=false; transpose_b=false} %3 %1 : f32[256,256]
%5 = tanh %4 : f32[256,256]
%6 = sum{axis=-1} %5 : f32[256,1]
%7 = matmul{transpose_a=false; transpose_b=false} %5 %0 : f32[256,256]
return %3 %0 %5 %6 %7 %7
)";

struct Told final : RunListener {
  std::vector<std::vector<std::byte>> outputs;
  int kernels = 0, until = -1;  // it throws after so many
  explicit Told(std::size_t count) : outputs(count) {}
  void made(std::size_t k, const Ref<Buffer>& output) override {
    EXPECT_TRUE(outputs[k].empty()) << "twice";
    const auto* first = output->data<std::byte>();
    outputs[k].assign(first, first + output->bytes());
  }
  void between() override {
    if (++kernels == until) throw Unavailable("a peer is gone");
  }
};

std::vector<Ref<Buffer>> inputs() {
  std::vector<Ref<Buffer>> made;
  for (int k = 0; k < 2; ++k) {
    made.push_back(Buffer::allocate(256 * 256 * 4));
    for (int i = 0; i < 256 * 256; ++i)
      made.back()->data<float>()[i] = static_cast<float>((i * 7 + k) % 13 - 6) * 1e-3f;
  }
  return made;
}

TEST(RunListener, IsToldOfEachOutputWhenAllOfItIsThere) {
  const auto program = cpu_backend::compile(parse_graph(written), {.tier = Tier::compiled});
  for (const int threads : {1, 2, 3}) {
    const Threads only(threads);
    Told told(6);
    std::vector<Ref<Buffer>> outputs(6);
    program->run(inputs(), outputs, {.listener = &told});
    EXPECT_GE(told.kernels, threads == 1 ? 4 : 2);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      EXPECT_EQ(std::memcmp(told.outputs[k].data(), outputs[k]->data(), told.outputs[k].size()), 0) << k;
    for (const auto& bytes : told.outputs) EXPECT_FALSE(bytes.empty());
  }
}

TEST(RunListener, WhatItThrowsComesWhenTheProgramHasRun) {
  const auto program = cpu_backend::compile(parse_graph(written), {.tier = Tier::compiled});
  for (const int threads : {1, 2}) {
    const Threads only(threads);
    Told told(6);
    told.until = 2;
    std::vector<Ref<Buffer>> outputs(6);
    EXPECT_EQ(error_of<Unavailable>([&] { program->run(inputs(), outputs, {.listener = &told}); }), "a peer is gone");
    EXPECT_EQ(told.kernels, 2) << "told nothing more";
    program->run(inputs(), outputs);  // nobody listens any more
  }
}

}  // namespace
}  // namespace gradus::run_listener_test
