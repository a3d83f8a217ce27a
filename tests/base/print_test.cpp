/// What was printed is there when the program dies.
#include "gradus/base/print.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace gradus::print_test {
namespace {

std::string printed_before(void (*death)()) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);  // what waits would be printed twice
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(STDERR_FILENO);
    print("epoch", 3, "loss", 0.5);
    death();
    _exit(0);
  }
  close(ends[1]);
  std::string text(100, '\0');
  std::size_t size = 0;
  for (ssize_t count; (count = read(ends[0], text.data() + size, text.size() - size)) > 0;)
    size += static_cast<std::size_t>(count);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  text.resize(size);
  return text;
}

TEST(Print, IsNotLostInAPipe) {
  EXPECT_EQ(printed_before([] { std::abort(); }), "epoch 3 loss 0.5\n");
  EXPECT_EQ(printed_before([] { _exit(1); }), "epoch 3 loss 0.5\n");
  EXPECT_EQ(printed_before([] { std::terminate(); }), "epoch 3 loss 0.5\n");
}

}  // namespace
}  // namespace gradus::print_test
