/// The order of elements in sort, top_k and unique: by number, NaN last, the first one first among equals. An element
/// becomes an entry of an unsigned key and its place, so that the order is total and an entry is compared at once.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace gradus::element_order {

/// Keys of elements of T: 32 bits where they suffice.
template <class T> using KeyOf = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;

/// The key of x: an element with a smaller key stands earlier. NaN has the largest key in both directions; 0 and -0
/// have one key.
template <bool descending, class T> constexpr KeyOf<T> key_of(T x) {
  using Key = KeyOf<T>;
  if constexpr (std::is_integral_v<T>) {
    constexpr Key flip = std::is_signed_v<T> ? Key{1} << (8 * sizeof(Key) - 1) : 0;
    const Key key = static_cast<Key>(x) ^ flip;
    return descending ? ~key : key;
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
    const Key bits = std::bit_cast<Key>(x);
    constexpr Key infinity = std::bit_cast<Key>(std::numeric_limits<T>::infinity());
    const Key magnitude = bits & ~sign;
    const Key signed_key = magnitude == 0 ? sign : bits & sign ? ~bits : bits | sign;
    const Key key = descending ? ~signed_key : signed_key;
    return magnitude > infinity ? ~Key{0} : key;
  } else {
    return key_of<descending>(static_cast<float>(x));
  }
}

/// An element of a row: its key, then its place.
template <class Key> struct Entry {
  Key key;
  std::uint32_t place;
  friend constexpr bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

/// From this many entries on a sort by digits is faster than one by comparisons.
constexpr std::size_t worth_digits = 256;

/// Puts entries in order by digits of 8 bits from `first` up, and leaves out those in which all keys agree. Entries
/// with one key keep their order. `room` has as many entries.
template <class Key>
void sort_by_digits(std::span<Entry<Key>> entries, std::span<Entry<Key>> room, std::size_t first = 0) {
  std::array<std::array<std::uint32_t, 256>, sizeof(Key)> counts{};
  for (const Entry<Key>& entry : entries)
    for (std::size_t digit = first; digit < sizeof(Key); ++digit) ++counts[digit][entry.key >> 8 * digit & 255];
  std::span<Entry<Key>> from = entries, to = room.first(entries.size());
  for (std::size_t digit = first; digit < sizeof(Key); ++digit) {
    std::array<std::uint32_t, 256>& at = counts[digit];
    if (at[entries[0].key >> 8 * digit & 255] == entries.size()) continue;
    std::uint32_t before = 0;
    for (std::uint32_t& count : at) before += std::exchange(count, before);
    for (const Entry<Key>& entry : from) to[at[entry.key >> 8 * digit & 255]++] = entry;
    std::swap(from, to);
  }
  if (from.data() != entries.data()) std::ranges::copy(from, entries.begin());
}

/// Puts entries that stand by place in order by the upper halves of their keys, then the few that share one by all of
/// their keys: half of the passes. False if more than one in eight shares its upper half with the one before.
inline bool sort_by_upper_halves(std::span<Entry<std::uint64_t>> entries, std::span<Entry<std::uint64_t>> room) {
  sort_by_digits(entries, room, sizeof(std::uint64_t) / 2);
  const auto upper = [](const Entry<std::uint64_t>& entry) { return entry.key >> 32; };
  std::size_t shared = 0;
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (upper(entries[i]) == upper(entries[i - 1])) ++shared;
  if (shared > entries.size() / 8) return false;
  for (std::size_t begin = 0, end = 0; shared > 0 && begin < entries.size(); begin = end) {
    for (end = begin + 1; end < entries.size() && upper(entries[end]) == upper(entries[begin]);) ++end;
    if (end - begin > 1)
      std::sort(entries.begin() + static_cast<std::ptrdiff_t>(begin),
                entries.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return true;
}

/// Puts entries that stand by place in order.
template <class Key> void sort_entries(std::span<Entry<Key>> entries, std::span<Entry<Key>> room) {
  if (entries.size() < worth_digits) return std::sort(entries.begin(), entries.end());
  if constexpr (sizeof(Key) == sizeof(std::uint64_t))
    if (sort_by_upper_halves(entries, room)) return;
  sort_by_digits(entries, room);
}

/// The entries that select_first keeps while it looks for `count` ones.
constexpr std::size_t room_to_select(std::size_t count) { return 2 * count + 1024; }

/// The first entries of the added ones, found while they are added by place.
template <class Key> class FirstEntries {
 public:
  /// Finds `count` > 0 entries, in `room` of room_to_select(count) entries.
  FirstEntries(std::size_t count, std::span<Entry<Key>> room) : room_(room), count_(count) {}
  void add(Entry<Key> entry) {
    room_[filled_++] = entry;
    if (filled_ == room_.size()) select();
  }
  /// True if there are enough entries before an entry with this key, of whatever later place.
  bool passes_over(const Key& key) const { return selected_ && !(key < room_[count_ - 1].key); }
  /// The entries, in no order.
  std::span<Entry<Key>> found() {
    if (filled_ > count_) select();
    return room_.first(filled_);
  }

 private:
  void select() {
    std::nth_element(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(count_ - 1),
                     room_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ = count_;
    selected_ = true;
  }
  std::span<Entry<Key>> room_;
  std::size_t count_, filled_ = 0;
  bool selected_ = false;  // since then the last of the first `count` stands at count - 1
};

/// Finds the first `count` > 0 of n entries, whose keys are key_at(place), in no order. Most keys are compared once, a
/// block of them without a branch.
template <class Key, class KeyAt>
std::span<Entry<Key>> select_first(std::size_t n, std::size_t count, std::span<Entry<Key>> room, const KeyAt& key_at) {
  constexpr std::size_t block = 32;
  FirstEntries<Key> first(count, room);
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = std::min(n, begin + block);
    int none = 1;
    for (std::size_t i = begin; i < end; ++i) none &= static_cast<int>(first.passes_over(key_at(i)));
    for (std::size_t i = begin; none == 0 && i < end; ++i)
      if (!first.passes_over(key_at(i))) first.add({key_at(i), static_cast<std::uint32_t>(i)});
  }
  return first.found();
}

}  // namespace gradus::element_order
