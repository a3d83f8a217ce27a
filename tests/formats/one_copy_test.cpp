/// Files of arrays are read into the arrays themselves: reading takes little more memory than these. A child process
/// reads each of them, and the system tells its peak.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fstream>
#include <functional>
#include "gradus/base/input_file.h"
#include "gradus/formats/npy.h"
#include "gradus/formats/npz.h"
#include "gradus/formats/safetensors.h"
#include "gradus/ops/creation.h"
#include "tests/formats/deflated_archive.h"
#include "tests/test_directory.h"

namespace gradus::one_copy_test {
namespace {

constexpr std::int64_t elements = 8 << 20, bytes = 4 * elements;

/// The largest memory of a child process that runs `work`, in bytes; -1 if it failed.
std::int64_t peak_of(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) { _exit(1); }
    _exit(0);
  }
  int status = -1;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0) return -1;
  return usage.ru_maxrss * 1024;
}

/// The memory that reading takes, in arrays.
double copies_of(const std::function<Tensor()>& read) {
  const auto check = [&] {
    if (read().host<float>()[elements - 1] != static_cast<float>(elements - 1)) throw InternalError("another array");
  };
  const std::int64_t peak = peak_of(check), before = peak_of([] {});
  EXPECT_TRUE(peak > 0 && before > 0);
  return static_cast<double>(peak - before) / bytes;
}

TEST(OneCopy, IsAllThatReadingTakes) {
  const EmptyTestDirectory directory;
  const auto at = [&](const char* name) { return directory.path() / name; };
  const auto write = [&] {
    const Tensor x = range(elements, f32);
    save_npy(at("x.npy"), x);
    save_npz(at("x.npz"), {{"x", x}});
    save_safetensors(at("x.safetensors"), {{"x", x}});
    std::string plain = npy_header(x.spec());
    plain.append(reinterpret_cast<const char*>(x.host<float>()), bytes);
    std::ofstream(at("packed.npz"), std::ios::binary) << deflated_archive("x.npy", plain);
  };
  ASSERT_GT(peak_of(write), 0);  // in a child, so that this process has no free memory to read into
  EXPECT_LT(copies_of([&] { return load_npy(at("x.npy")); }), 1.4);
  EXPECT_LT(copies_of([&] { return load_npz(at("x.npz"))[0].second; }), 1.4);
  EXPECT_LT(copies_of([&] { return load_npz(at("packed.npz"))[0].second; }), 1.4);
  EXPECT_LT(copies_of([&] { return load_safetensors(at("x.safetensors"))[0].second; }), 1.4);
  const auto whole = [&] { return parse_npy(read_whole_file(at("x.npy")), "x.npy"); };
  EXPECT_GT(copies_of(whole), 1.8) << "two copies must be seen as two";
}

}  // namespace
}  // namespace gradus::one_copy_test
