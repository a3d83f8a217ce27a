#include "gradus/tensor/buffer.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <new>
#include "gradus/base/error.h"
#include "gradus/tensor/borrowed.h"
#include "gradus/tensor/heap.h"

namespace gradus {

namespace detail::inline rooms {

/// Borrowed memory, which others own.
struct BorrowedBuffer : Buffer {
  BorrowedBuffer(void* data, std::int64_t bytes, std::shared_ptr<const void> kept);
  static bool is_of_host(const Buffer& buffer);
  std::shared_ptr<const void> owner;
  std::shared_ptr<DeviceMemory> device;
};

}  // namespace detail::inline rooms

namespace {

constexpr std::int64_t header = 64, padding = 64;
constexpr std::int64_t buffer_offset = sizeof(heap::Block);
static_assert(buffer_offset + sizeof(Buffer) <= header);
constexpr int span_kind = heap::class_count, borrowed_kind = span_kind + 1;
constexpr std::int64_t largest_request = std::numeric_limits<std::int64_t>::max() - header - padding - heap::page_bytes;

// AddressSanitizer finds a use after free only if memory is not reused.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool caching = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif
#else
constexpr bool caching = true;
#endif

/// The small blocks that a thread has at hand, and its account.
struct Cache {
  struct Blocks {
    heap::Block* head = nullptr;
    int count = 0;
  };
  std::array<Blocks, heap::class_count> blocks;
  memory::Account account;
  std::array<std::unique_ptr<memory::Account>, Device::most> others;  // of further logical devices

  Cache() { memory::open(account); }
  Cache(const Cache&) = delete;
  ~Cache() {
    for (Blocks& list : blocks) heap::give(list.head);
    memory::close(account);
    for (const auto& other : others)
      if (other) memory::close(*other);
  }
  memory::Account& account_of(int device) {
    if (device == 0) [[likely]]
      return account;
    auto& other = others[static_cast<std::size_t>(device)];
    if (!other) {
      other = std::make_unique<memory::Account>();
      other->device = device;
      memory::open(*other);
    }
    return *other;
  }
};

/// How many blocks move between a thread and the heap at once; a thread keeps up to twice as many.
constexpr auto batches = [] {
  std::array<int, heap::class_count> counts{};
  for (int c = 0; c < heap::class_count; ++c)
    counts[static_cast<std::size_t>(c)] =
        static_cast<int>(std::clamp(heap::largest_small / heap::class_size(c), std::int64_t{2}, std::int64_t{64}));
  return counts;
}();

// Plain pointers cost no check for construction at each use, and can be asked after the thread's destructors have run.
constinit thread_local Cache* cache = nullptr;
constinit thread_local bool thread_ended = false;
constinit thread_local int logical_device = 0;

struct CacheOwner {
  std::unique_ptr<Cache> owned = std::make_unique<Cache>();
  CacheOwner() { cache = owned.get(); }
  CacheOwner(const CacheOwner&) = delete;
  ~CacheOwner() {
    cache = nullptr;
    thread_ended = true;
  }
};

/// The thread's cache; null when its destructors are running.
[[gnu::noinline]] Cache* make_cache() {
  if (!thread_ended) thread_local CacheOwner owner;
  return cache;
}
Cache* this_cache() { return cache ? cache : make_cache(); }

heap::Block* block_of(Buffer* buffer) {
  return reinterpret_cast<heap::Block*>(reinterpret_cast<std::byte*>(buffer) - buffer_offset);
}
Buffer* place_of(heap::Block* block) {
  return reinterpret_cast<Buffer*>(reinterpret_cast<std::byte*>(block) + buffer_offset);
}

heap::Block* take_uncached(std::int64_t size) {
  void* memory = std::aligned_alloc(64, static_cast<std::size_t>((size + 63) / 64 * 64));
  return memory ? new (memory) heap::Block{} : throw std::bad_alloc();
}

[[gnu::noinline]] heap::Block* refill(Cache::Blocks& list, int size_class) {
  heap::Block* taken = heap::take(size_class, batches[static_cast<std::size_t>(size_class)]);
  list.head = taken->next;
  list.count = 0;
  for (auto* block = list.head; block; block = block->next) ++list.count;
  return taken;
}
[[gnu::noinline]] void return_batch(Cache::Blocks& list, int count) noexcept {
  heap::Block* first = list.head;
  heap::Block* last = first;
  for (int i = 1; i < count; ++i) last = last->next;
  list.head = std::exchange(last->next, nullptr);
  list.count -= count;
  heap::give(first);
}

heap::Block* take_small(Cache* own, int size_class) {
  if (!own) return heap::take(size_class, 1);
  Cache::Blocks& list = own->blocks[static_cast<std::size_t>(size_class)];
  heap::Block* block = list.head;
  if (!block) [[unlikely]]
    return refill(list, size_class);
  list.head = block->next;
  --list.count;
  return block;
}
void give_small(Cache* own, heap::Block* block, int size_class) noexcept {
  if (!own) {
    block->next = nullptr;
    return heap::give(block);
  }
  Cache::Blocks& list = own->blocks[static_cast<std::size_t>(size_class)];
  block->next = list.head;
  list.head = block;
  const int batch = batches[static_cast<std::size_t>(size_class)];
  if (++list.count > 2 * batch) [[unlikely]]
    return_batch(list, batch);
}

heap::Block* take_block(Cache* own, std::int64_t size, int kind) {
  if (!caching) return take_uncached(size);
  return kind == span_kind ? heap::take_span(size) : take_small(own, kind);
}
void give_block(Cache* own, heap::Block* block, int kind) noexcept {
  if (!caching) std::free(block);
  else if (kind == span_kind) heap::give_span(block);
  else give_small(own, block, kind);
}

void charge(Cache* own, int device, std::int64_t bytes, const char* what) {
  if (own) memory::charge(own->account_of(device), bytes, what);
  else memory::charge_without_account(device, bytes, what);
}
void discharge(Cache* own, int device, std::int64_t bytes) noexcept {
  if (own && (device == 0 || own->others[static_cast<std::size_t>(device)]))
    memory::discharge(own->account_of(device), bytes);
  else memory::discharge_without_account(device, bytes);
}

}  // namespace

BorrowedBuffer::BorrowedBuffer(void* data, std::int64_t bytes, std::shared_ptr<const void> kept)
    : Buffer(data, bytes, borrowed_kind), owner(std::move(kept)) {}

bool BorrowedBuffer::is_of_host(const Buffer& buffer) {
  return buffer.kind_ == borrowed_kind && !buffer.device_memory();
}

bool is_borrowed(const Buffer& buffer) { return BorrowedBuffer::is_of_host(buffer); }

Ref<Buffer> Buffer::allocate(std::int64_t bytes, const char* what) {
  internal_check(bytes >= 0, "a buffer of ", bytes, " bytes");
  if (bytes > largest_request) [[unlikely]]
    memory::fail_system(bytes, what);
  const std::int64_t size = header + bytes + padding;
  const int kind = size <= heap::largest_small ? heap::class_of(size) : span_kind;
  Cache* own = this_cache();
  const int device = logical_device;
  charge(own, device, bytes, what);
  try {
    std::unique_ptr<memory::Holder> holder;
    if (bytes >= memory::labelled_bytes) holder.reset(new memory::Holder{bytes, what, device});
    heap::Block* block = take_block(own, size, kind);
    auto* buffer = new (place_of(block)) Buffer(reinterpret_cast<std::byte*>(block) + header, bytes, kind, device);
    if (holder) memory::enlist(*holder);
    buffer->holder_ = std::move(holder);
    return buffer;
  } catch (const std::bad_alloc&) {
    discharge(own, device, bytes);
    memory::fail_system(bytes, what);
  }
}

namespace {
/// The memory of values without elements that bring none: kernels compute places in it, and read nothing there.
alignas(64) std::byte nowhere[64];
}  // namespace

Ref<Buffer> Buffer::borrow(void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
  if (!data && bytes == 0) data = nowhere;
  return new BorrowedBuffer(data, bytes, std::move(owner));
}

Ref<Buffer> Buffer::of_device(std::shared_ptr<DeviceMemory> memory, std::int64_t bytes) {
  auto* buffer = new BorrowedBuffer(nullptr, bytes, {});
  buffer->device = std::move(memory);
  return buffer;
}

DeviceMemory* Buffer::device_memory() const {
  return kind_ == borrowed_kind ? static_cast<const BorrowedBuffer*>(this)->device.get() : nullptr;
}

const void* Buffer::host_of_device() const {
  DeviceMemory* const memory = device_memory();
  return memory ? memory->host() : data_;
}

Ref<Buffer> Buffer::on_host(Ref<Buffer> buffer) {
  if (!buffer->device_memory()) return buffer;
  const void* const bytes = buffer->host();
  const std::int64_t size = buffer->bytes();
  struct Kept {
    Ref<Buffer> buffer;
  };
  return borrow(const_cast<void*>(bytes), size, std::make_shared<Kept>(Kept{std::move(buffer)}));
}

void Buffer::set_label(std::string label) {
  if (holder_) memory::relabel(*holder_, std::move(label));
}

void detail::dispose(Buffer* buffer) noexcept {
  const int kind = buffer->kind_;
  if (kind == borrowed_kind) {
    delete static_cast<BorrowedBuffer*>(buffer);
    return;
  }
  const std::int64_t bytes = buffer->bytes_;
  const int device = buffer->device_;
  if (buffer->holder_) memory::delist(*buffer->holder_);
  buffer->~Buffer();
  Cache* own = this_cache();
  give_block(own, block_of(buffer), kind);
  discharge(own, device, bytes);
}

OnLogicalDevice::OnLogicalDevice(int index) : before_(std::exchange(logical_device, index)) {}
OnLogicalDevice::~OnLogicalDevice() { logical_device = before_; }

}  // namespace gradus
