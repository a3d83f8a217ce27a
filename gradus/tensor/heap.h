/// The allocator behind buffers. Small blocks have size classes, eight per doubling, and are cut from spans of pages;
/// larger ones are spans of their own. Spans are split from and merged into arenas. Arenas are aligned to huge pages
/// and, once the heap is settled, made of them. One mutex guards everything: buffers keep small blocks in a cache per
/// thread and come here in batches.
#pragma once
#include <bit>
#include <cstdint>

namespace gradus::heap {

inline constexpr std::int64_t page_bytes = 8 << 10;  // more than 64 KiB in pages of 8 KiB wastes at most 12.5 %
inline constexpr std::int64_t huge_page_bytes = 2 << 20;
inline constexpr std::int64_t largest_small = 64 << 10;
inline constexpr int class_count = 64;

struct Span;

/// The first bytes of a block, which the heap needs itself: the holder of a block must not write `span`.
struct Block {
  Block* next;
  Span* span;
};

/// The size class for a block of `size` <= largest_small bytes. Every class is a multiple of 64.
constexpr int class_of(std::int64_t size) {
  if (size <= 1024) return static_cast<int>((size + 63) / 64 - (size > 0));
  const auto last = static_cast<std::uint64_t>(size - 1);
  const int width = std::bit_width(last);
  return 16 + (width - 11) * 8 + static_cast<int>((last >> (width - 4)) & 7);
}
constexpr std::int64_t class_size(int size_class) {
  if (size_class < 16) return (size_class + 1) * std::int64_t{64};
  return std::int64_t{9 + size_class % 8} << (7 + (size_class - 16) / 8);
}

/// Takes a list of at least one and at most `count` blocks, aligned to 64 bytes. std::bad_alloc if the system has no
/// more.
Block* take(int size_class, int count);
/// Returns a list of small blocks of any classes.
void give(Block* list) noexcept;

/// Takes a block of any size. std::bad_alloc if the system has no more.
Block* take_span(std::int64_t size);
void give_span(Block* block) noexcept;

/// Declares that the process goes on computing: a program runs once more. From now on new memory is made of huge pages.
/// Each call joins the small pages of at most `bytes`, rounded up to huge pages, of existing memory, as far as the
/// system does so, and takes 1 to 10 ms for each huge page; once all are joined it costs one load. Memory that was
/// never touched is left alone, and comes in huge pages when it is touched. Before the first call, the first 256 MiB
/// are small pages. A process that computes once is faster with those, above all in a virtual machine whose host takes
/// huge pages back as soon as they are free, and has to find memory again for each. Returns the bytes that it has
/// treated; 0: no small page is left. The environment's GRADUS_HUGE_PAGES=0 keeps all memory in the pages that the
/// system chooses.
std::int64_t settle(std::int64_t bytes = huge_page_bytes) noexcept;

/// Returns the arenas without a live block to the system. This also happens when arenas hold much more than was live of
/// late, and when they would grow past the limit.
void trim() noexcept;
void set_limit(std::int64_t bytes) noexcept;
/// Bytes held from the system.
std::int64_t reserved_bytes() noexcept;

}  // namespace gradus::heap
