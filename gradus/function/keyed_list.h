/// KeyedList: a hash map whose keys are words, with a list in the order of last use. It adds up the costs of its
/// entries.
#pragma once
#include <algorithm>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"

namespace gradus {

template <class T> class KeyedList {
 public:
  struct Entry {
    std::uint64_t hash;
    std::vector<std::uint64_t> key;
    T value;
    std::size_t bytes = 0;
  };

  static std::uint64_t hash_of_words(std::span<const std::uint64_t> words) {
    std::uint64_t hash = words.size();
    for (std::uint64_t word : words) hash = mix(hash, word);
    return hash;
  }

  /// The entry of `key`, which is the last used one then; null if there is none.
  Entry* find(std::uint64_t hash, std::span<const std::uint64_t> key) {
    for (auto [it, last] = places_.equal_range(hash); it != last; ++it)
      if (std::ranges::equal(it->second->key, key)) {
        entries_.splice(entries_.begin(), entries_, it->second);
        return &*it->second;
      }
    return nullptr;
  }
  /// A key that is not there.
  Entry& add(std::uint64_t hash, std::span<const std::uint64_t> key, T value) {
    entries_.push_front({hash, {key.begin(), key.end()}, std::move(value)});
    places_.emplace(hash, entries_.begin());
    return entries_.front();
  }
  void set_bytes(Entry& entry, std::size_t bytes) {
    bytes_ += bytes - entry.bytes;
    entry.bytes = bytes;
  }
  void drop_oldest() {
    const auto oldest = std::prev(entries_.end());
    bytes_ -= oldest->bytes;
    const auto [first, last] = places_.equal_range(oldest->hash);
    places_.erase(std::find_if(first, last, [&](const auto& place) { return place.second == oldest; }));
    entries_.erase(oldest);
  }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::list<Entry> entries_;  // last used first
  std::unordered_multimap<std::uint64_t, typename std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0;
};

}  // namespace gradus
