#include "gradus/tensor/heap.h"
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>

namespace gradus::heap {

struct Arena;

/// A run of pages; described by the entry of its first page. The entry of its last page knows `first` too.
struct Span {
  Span* previous;
  Span* next;
  Arena* arena;
  std::uint32_t first;  // page of the arena
  std::uint32_t pages;
  std::uint32_t live;  // small blocks taken from it
  std::uint32_t cut;   // small blocks ever cut from it
  Block* returned;     // small blocks that came back
  int size_class;
  bool is_free;
};

struct Arena {
  Arena* previous;
  Arena* next;
  std::byte* base;
  std::uint32_t pages;
  bool is_small;                  // came in small pages, not all of which are joined
  std::int64_t joined;            // bytes from the beginning whose pages are joined, if it is small
  std::unique_ptr<Span[]> spans;  // one entry a page
};

namespace {

constexpr std::int64_t kept_always = 64 << 20;
constexpr std::int64_t most_small = 256 << 20;  // of memory in small pages, before the heap is settled
constexpr std::int64_t least_growth = 8 << 20, most_growth = 64 << 20;  // of addresses: pages come when touched
constexpr int window = 1024;  // freed spans: longer than a training step, shorter than the patience of other programs

/// A doubly linked list through the items themselves, so that freeing never allocates.
template <class T> struct List {
  T* head = nullptr;
  void push(T* item) {
    item->previous = nullptr;
    item->next = head;
    if (head) head->previous = item;
    head = item;
  }
  void remove(T* item) {
    (item->previous ? item->previous->next : head) = item->next;
    if (item->next) item->next->previous = item->previous;
  }
};

/// Free spans by length: exact below 16 pages, then eight bins to a doubling.
constexpr int bin_of(std::uint32_t pages) {
  if (pages < 16) return static_cast<int>(pages) - 1;
  const int width = static_cast<int>(std::bit_width(pages));
  return 15 + (width - 5) * 8 + static_cast<int>((pages >> (width - 4)) & 7);
}
constexpr int bin_count = bin_of(~0u) + 1;

/// Pages of a span of small blocks: at least four blocks (eight small ones), and a rest of an eighth at most.
constexpr std::uint32_t pages_for(int size_class) {
  const std::int64_t size = class_size(size_class);
  const std::int64_t wanted = size <= page_bytes ? 8 : 4;
  std::int64_t pages = 1;
  while (pages * page_bytes / size < wanted || pages * page_bytes % size > pages * page_bytes / 8) ++pages;
  return static_cast<std::uint32_t>(pages);
}
constexpr auto span_pages = [] {
  std::array<std::uint32_t, class_count> pages{};
  for (int c = 0; c < class_count; ++c) pages[static_cast<std::size_t>(c)] = pages_for(c);
  return pages;
}();

std::byte* address_of(const Span& span) { return span.arena->base + span.first * page_bytes; }

/// Trivially destructible: buffers may be freed by the destructors of other statics.
class Heap {
 public:
  Block* take(int size_class, int count) {
    const std::lock_guard lock(mutex_);
    List<Span>& spans = usable_[static_cast<std::size_t>(size_class)];
    if (!spans.head) spans.push(new_span(size_class));
    Span& span = *spans.head;
    Block* list = nullptr;
    for (; count > 0 && has_block(span); --count) {
      Block* block = take_from(span);
      block->next = list;
      list = block;
    }
    if (!has_block(span)) spans.remove(&span);
    return list;
  }

  void give(Block* list) {
    const std::lock_guard lock(mutex_);
    while (list) {
      Block* next = list->next;
      give_back(list);
      list = next;
    }
  }

  Block* take_span(std::int64_t size) {
    const std::int64_t pages = (size + page_bytes - 1) / page_bytes;
    if (pages > std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    Span* span = allocate(static_cast<std::uint32_t>(pages));
    return new (address_of(*span)) Block{nullptr, span};
  }

  void give_span(Span* span) {
    const std::lock_guard lock(mutex_);
    release(span);
  }

  /// Unlocks between two huge pages: other threads allocate meanwhile, and arenas may go.
  std::int64_t settle(std::int64_t most) {
    std::int64_t treated = 0;
    while (treated < most && !is_joined_.load(std::memory_order_relaxed)) {
      const std::lock_guard lock(mutex_);
      if (!is_settled_.exchange(true, std::memory_order_relaxed)) want_huge_pages();
      treated += join_next_page();
    }
    return treated;
  }
  void trim() {
    const std::lock_guard lock(mutex_);
    unmap_down_to(0);
  }
  void set_limit(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    if (reserved_ > limit_) unmap_down_to(limit_);
  }
  std::int64_t reserved() {
    const std::lock_guard lock(mutex_);
    return reserved_;
  }

 private:
  static bool has_block(const Span& span) {
    return span.returned || span.cut < span.pages * page_bytes / class_size(span.size_class);
  }
  static Block* take_from(Span& span) {
    ++span.live;
    if (Block* block = span.returned) {
      span.returned = block->next;
      return block;
    }
    return new (address_of(span) + span.cut++ * class_size(span.size_class)) Block{nullptr, &span};
  }
  void give_back(Block* block) {
    Span* span = block->span;
    List<Span>& spans = usable_[static_cast<std::size_t>(span->size_class)];
    if (!has_block(*span)) spans.push(span);
    block->next = span->returned;
    span->returned = block;
    if (--span->live == 0) {
      spans.remove(span);
      release(span);
    }
  }

  Span* new_span(int size_class) {
    Span* span = allocate(span_pages[static_cast<std::size_t>(size_class)]);
    span->size_class = size_class;
    span->live = span->cut = 0;
    span->returned = nullptr;
    return span;
  }

  Span* allocate(std::uint32_t pages) {
    Span* span = find(pages);
    if (!span) span = grow(pages);
    remove_free(span);
    if (span->pages > pages) {
      insert_free(describe(*span->arena, span->first + pages, span->pages - pages));
      describe(*span->arena, span->first, pages);
    }
    used_ += pages * page_bytes;
    recent_peak_ = std::max(recent_peak_, used_);
    return span;
  }

  /// Merges the span with its free neighbours.
  void release(Span* span) {
    used_ -= span->pages * page_bytes;
    Arena& arena = *span->arena;
    std::uint32_t first = span->first, end = first + span->pages;
    if (end < arena.pages && arena.spans[end].is_free) {
      Span* after = &arena.spans[end];
      remove_free(after);
      end += after->pages;
    }
    if (first > 0 && arena.spans[arena.spans[first - 1].first].is_free) {
      Span* before = &arena.spans[arena.spans[first - 1].first];
      remove_free(before);
      first = before->first;
    }
    insert_free(describe(arena, first, end - first));
    if (++freed_spans_ == window) {
      freed_spans_ = 0;
      earlier_peak_ = recent_peak_;
      recent_peak_ = used_;
    }
    if (end - first == arena.pages) unmap_down_to(std::max(kept_always, std::max(earlier_peak_, recent_peak_) / 4 * 5));
  }

  /// A free span of at least `pages` pages, near the smallest such.
  Span* find(std::uint32_t pages) {
    int bin = bin_of(pages);
    for (Span* span = free_[static_cast<std::size_t>(bin)].head; span; span = span->next)
      if (span->pages >= pages) return span;
    for (++bin; bin < bin_count; bin = (bin / 64 + 1) * 64)
      if (const std::uint64_t above = filled_[static_cast<std::size_t>(bin / 64)] >> (bin % 64))
        return free_[static_cast<std::size_t>(bin + std::countr_zero(above))].head;
    return nullptr;
  }

  static Span* describe(Arena& arena, std::uint32_t first, std::uint32_t pages) {
    Span* span = &arena.spans[first];
    span->arena = &arena;
    span->first = arena.spans[first + pages - 1].first = first;
    span->pages = pages;
    return span;
  }
  void insert_free(Span* span) {
    const auto bin = static_cast<std::size_t>(bin_of(span->pages));
    span->is_free = true;
    free_[bin].push(span);
    filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  }
  void remove_free(Span* span) {
    const auto bin = static_cast<std::size_t>(bin_of(span->pages));
    span->is_free = false;
    free_[bin].remove(span);
    if (!free_[bin].head) filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  }

  Span* grow(std::uint32_t pages) {
    const auto whole = [](std::int64_t bytes) {
      return (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    };
    const std::int64_t needed = pages * page_bytes;  // the rest of a huge page would be touched with its beginning
    std::int64_t bytes = std::max(needed, whole(std::clamp(reserved_ / 4, least_growth, most_growth)));
    if (reserved_ + bytes > limit_) bytes = needed;
    if (reserved_ + bytes > limit_) unmap_down_to(std::max(std::int64_t{0}, limit_ - bytes));
    auto arena = std::make_unique<Arena>();
    arena->pages = static_cast<std::uint32_t>(bytes / page_bytes);
    arena->spans = std::make_unique<Span[]>(arena->pages);
    arena->base = map(bytes);
    if (!arena->base) {
      unmap_down_to(0);
      arena->base = map(bytes);
    }
    if (!arena->base) throw std::bad_alloc();
    arena->is_small =
        !is_settled_.load(std::memory_order_relaxed) && reserved_ + bytes <= most_small && bytes >= huge_page_bytes;
    arena->joined = 0;
    if (!arena->is_small && uses_huge_pages()) want_huge_pages(*arena);
    reserved_ += bytes;
    arenas_.push(arena.get());
    Span* span = describe(*arena, 0, arena->pages);
    insert_free(span);
    return arena.release()->spans.get();
  }

  static std::byte* map(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes), spare = static_cast<std::size_t>(huge_page_bytes);
    void* mapped =
        mmap(nullptr, wanted + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* begin = static_cast<std::byte*>(mapped);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % spare;
    if (before) munmap(begin, before);
    static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));  // up to 64 KiB on ARM
    const std::size_t kept = (wanted + page - 1) / page * page;
    munmap(begin + before + kept, wanted + spare - before - kept);
    return begin + before;
  }
  static void want_huge_pages(const Arena& arena) {
    madvise(arena.base, static_cast<std::size_t>(arena.pages * page_bytes), MADV_HUGEPAGE);
  }
  static bool uses_huge_pages() {
    static const bool uses = [] {
      const char* const setting = std::getenv("GRADUS_HUGE_PAGES");
      return !setting || std::string_view(setting) != "0";
    }();
    return uses;
  }
  void want_huge_pages() const {
    for (const Arena* arena = arenas_.head; arena && uses_huge_pages(); arena = arena->next) want_huge_pages(*arena);
  }

  /// Joins the pages of the next touched huge page of a small arena, and returns its size; 0 if there is none.
  std::int64_t join_next_page() {
    for (Arena* arena = uses_huge_pages() ? arenas_.head : nullptr; arena; arena = arena->next)
      while (arena->is_small) {
        std::byte* const page = arena->base + arena->joined;
        arena->joined += huge_page_bytes;
        arena->is_small = arena->joined + huge_page_bytes <= arena->pages * page_bytes;
        if (is_touched(page) && join(page)) return huge_page_bytes;
      }
    is_joined_.store(true, std::memory_order_relaxed);
    return 0;
  }
  /// True if a part of this huge page is in memory, or the system does not say.
  static bool is_touched(std::byte* page) {
    std::array<unsigned char, huge_page_bytes / 4096> present{};  // a byte for each page of the system
    if (mincore(page, huge_page_bytes, present.data()) != 0) return true;
    return std::ranges::any_of(present, [](unsigned char byte) { return (byte & 1) != 0; });
  }
  /// False if the system cannot join pages at once (Linux before 6.1), but does it by and by.
  static bool join(std::byte* page) {
    constexpr int collapse = 25;  // MADV_COLLAPSE, which the C library does not name yet
    return madvise(page, huge_page_bytes, collapse) == 0 || errno != EINVAL;
  }

  void unmap_down_to(std::int64_t kept) {
    for (Arena* arena = arenas_.head; arena && reserved_ > kept;) {
      Arena* next = arena->next;
      if (arena->spans[0].is_free && arena->spans[0].pages == arena->pages) unmap(arena);
      arena = next;
    }
  }
  void unmap(Arena* arena) {
    const std::unique_ptr<Arena> owned(arena);
    remove_free(&arena->spans[0]);
    arenas_.remove(arena);
    reserved_ -= arena->pages * page_bytes;
    munmap(arena->base, static_cast<std::size_t>(arena->pages * page_bytes));
  }

  std::mutex mutex_;
  std::array<List<Span>, class_count> usable_;  // spans that have a block to give
  std::array<List<Span>, bin_count> free_;
  std::array<std::uint64_t, bin_count / 64 + 1> filled_{};
  List<Arena> arenas_;
  std::int64_t reserved_ = 0, used_ = 0, limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t earlier_peak_ = 0, recent_peak_ = 0;  // of used_, in the last and in this window of freed spans
  int freed_spans_ = 0;
  std::atomic<bool> is_settled_ = false;
  std::atomic<bool> is_joined_ = false;  // and no pages are left to join
};

constinit Heap heap;

}  // namespace

Block* take(int size_class, int count) { return heap.take(size_class, count); }
void give(Block* list) noexcept { heap.give(list); }
Block* take_span(std::int64_t size) { return heap.take_span(size); }
void give_span(Block* block) noexcept { heap.give_span(block->span); }
std::int64_t settle(std::int64_t bytes) noexcept { return heap.settle(bytes); }
void trim() noexcept { heap.trim(); }
void set_limit(std::int64_t bytes) noexcept { heap.set_limit(bytes); }
std::int64_t reserved_bytes() noexcept { return heap.reserved(); }

}  // namespace gradus::heap
