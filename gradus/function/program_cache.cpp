/// A hash map with a list in the order of last use.
#include "gradus/function/program_cache.h"
#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include "gradus/backend/tier_choice.h"

namespace gradus {
namespace {

struct Entry {
  std::uint64_t hash;  // of the key
  std::vector<std::uint64_t> key;
  Graph graph;                             // keeps the op records alive whose addresses stand in the key
  std::shared_ptr<const Program> program;  // null until it is worth compiling
  int sights = 0;
  std::size_t bytes = 0;
};
using Entries = std::list<Entry>;

struct Cache {
  std::mutex guard;
  Entries entries;  // last used first
  std::unordered_multimap<std::uint64_t, Entries::iterator> places;
  std::size_t bytes = 0, limit = std::size_t{256} << 20;

  Entry* find(std::uint64_t hash, std::span<const std::uint64_t> key) {
    for (auto [it, last] = places.equal_range(hash); it != last; ++it)
      if (std::ranges::equal(it->second->key, key)) {
        entries.splice(entries.begin(), entries, it->second);
        return &*it->second;
      }
    return nullptr;
  }

  void evict() {
    while (bytes > limit && entries.size() > 1) {
      const auto oldest = std::prev(entries.end());
      bytes -= oldest->bytes;
      const auto [first, last] = places.equal_range(oldest->hash);
      places.erase(std::find_if(first, last, [&](const auto& place) { return place.second == oldest; }));
      entries.erase(oldest);
    }
  }
};
Cache& cache() {
  static auto* only = new Cache;
  return *only;
}

std::uint64_t hash_of_words(std::span<const std::uint64_t> words) {
  std::uint64_t hash = words.size();
  for (std::uint64_t word : words) hash = mix(hash, word);
  return hash;
}

/// Compiling takes about a millisecond an op, so that a long chain has to come back more often before it pays.
bool worth_compiling(const Entry& entry) {
  return entry.sights >= 1 + static_cast<int>(entry.graph.values.size() / 512);
}

std::size_t estimated_bytes(const Entry& entry) {
  return sizeof(Entry) + entry.key.size() * sizeof(std::uint64_t) + entry.graph.values.size() * (sizeof(Value) + 16) +
         (entry.program ? entry.program->footprint() : 0);
}

}  // namespace

std::shared_ptr<const Program> cached_program(std::span<const std::uint64_t> key, const std::function<Graph()>& build) {
  const std::uint64_t hash = hash_of_words(key);
  Graph graph;
  bool worth = false;
  {
    std::lock_guard lock(cache().guard);
    if (Entry* known = cache().find(hash, key)) {
      if (known->program) return known->program;
      worth = worth_compiling(*known);
      graph = known->graph;
    }
  }
  if (graph.values.empty()) {
    graph = build();
    worth = !is_interpreted_sooner(graph);
  }
  const auto program = compile(graph, {.tier = worth ? Tier::compiled : Tier::interpreted});
  std::lock_guard lock(cache().guard);
  Entry* entry = cache().find(hash, key);
  if (!entry) {
    cache().entries.push_front({.hash = hash, .key = {key.begin(), key.end()}, .graph = std::move(graph)});
    cache().places.emplace(hash, cache().entries.begin());
    entry = &cache().entries.front();
  }
  cache().bytes -= entry->bytes;
  ++entry->sights;
  if (worth) entry->program = program;
  entry->bytes = estimated_bytes(*entry);
  cache().bytes += entry->bytes;
  cache().evict();
  return program;
}

ProgramCacheUse program_cache_use() {
  std::lock_guard lock(cache().guard);
  return {cache().entries.size(), cache().bytes, cache().limit};
}

void set_program_cache_limit(std::size_t bytes) {
  std::lock_guard lock(cache().guard);
  cache().limit = bytes;
  cache().evict();
}

}  // namespace gradus
