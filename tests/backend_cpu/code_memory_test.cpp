/// Memory of generated code: one mapping, however the address space looks, and protected when it is done.
#include "gradus/backend/cpu/codegen/code_memory.h"
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <vector>
#include "gradus/base/error.h"

namespace gradus::cpu_backend::code_memory_test {
namespace {

/// "r-xp" of the mapping that holds this address.
std::string protection_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string protection;
    fields >> std::hex >> begin >> dash >> end >> protection;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (at >= begin && at < end) return protection;
  }
  return "";
}

/// Sections as the linker asks for them: each rounded up to the largest alignment of its kind.
TEST(CodeMemory, SectionsLieBesideEachOtherInACrowdedProcess) {
  // Holes of a page between regions of 1 GiB: whatever is mapped by itself may get one of them.
  std::vector<void*> regions;
  constexpr std::size_t region = std::size_t{1} << 30, page = 4096;
  for (int i = 0; i < 8; ++i)
    regions.push_back(mmap(nullptr, region, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  for (void* const each : regions) ASSERT_NE(each, MAP_FAILED);
  for (void* const each : regions) munmap(static_cast<char*>(each) + region / 2, page);

  CodeMemory memory;
  memory.reserve(3 * 64, 2 * 128 + 64, 32);
  const std::vector<std::byte*> sections{memory.code().take(100, 64), memory.code().take(7, 16),
                                         memory.constants().take(128, 64), memory.constants().take(100, 64),
                                         memory.data().take(20, 32)};
  for (std::byte* const each : sections) ASSERT_NE(each, nullptr);
  const auto [first, last] = std::minmax_element(sections.begin(), sections.end());
  EXPECT_LT(*last - *first, 4 * static_cast<std::ptrdiff_t>(page));
  for (std::size_t i = 0; i < sections.size(); ++i)
    std::fill_n(sections[i], i == 0 || i == 3 ? 100 : 7, static_cast<std::byte>(i + 1));
  for (std::size_t i = 0; i < sections.size(); ++i) EXPECT_EQ(*sections[i], static_cast<std::byte>(i + 1)) << "overlap";
  for (const std::size_t i : {0u, 2u, 3u}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(sections[i]) % 64, 0U);

  ASSERT_TRUE(memory.protect());
  EXPECT_EQ(protection_of(sections[0]), "r-xp");
  EXPECT_EQ(protection_of(sections[2]), "r--p");
  EXPECT_EQ(protection_of(sections[4]), "rw-p");
  for (void* const each : regions) munmap(each, region);
}

TEST(CodeMemory, GivesNoMoreThanWasReserved) {
  CodeMemory memory;
  memory.reserve(10, 0, 0);
  EXPECT_NE(memory.code().take(4096, 16), nullptr);  // a page
  EXPECT_EQ(memory.code().take(1, 1), nullptr);
  EXPECT_EQ(memory.constants().take(1, 1), nullptr);
  CodeMemory none;
  none.reserve(std::size_t{1} << 62, 0, 0);
  EXPECT_EQ(none.code().take(1, 1), nullptr);
  EXPECT_TRUE(none.protect());
}

}  // namespace
}  // namespace gradus::cpu_backend::code_memory_test
