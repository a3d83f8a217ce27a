/// Tables of a step as images for an object file.
#pragma once
#include <vector>
#include "gradus/backend/cpu/object/step_layout.h"
#include "gradus/backend/cpu/run/data_image.h"

namespace gradus::object {

using Image = std::shared_ptr<const DataImage>;

/// An entry's pointer, in words from its beginning, and its target.
struct EntryPointer {
  std::size_t entry, offset;
  Image to = nullptr;
  KernelFunction code = nullptr;
};

/// A table under construction.
template <class Entry> struct TableImage {
  std::vector<Entry> entries;
  std::vector<EntryPointer> pointers;

  Image image() const {
    DataImage made = DataImage::of_bytes(entries.data(), entries.size() * sizeof(Entry));
    for (const EntryPointer& p : pointers)
      made.pointers.push_back({.offset = p.entry * sizeof(Entry) + p.offset, .to = p.to, .code = p.code});
    return std::make_shared<const DataImage>(std::move(made));
  }
  /// Writes it where `whole`, whose image is `into`, has this table.
  template <class Whole> void set(DataImage& into, Whole& whole, Table<Entry> Whole::* table) const {
    const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&(whole.*table)) -
                                                 reinterpret_cast<const std::byte*>(&whole));
    const auto count = static_cast<std::int64_t>(entries.size());
    std::memcpy(into.bytes.data() + offset + offsetof(Table<Entry>, count), &count, sizeof count);
    if (count > 0) into.pointers.push_back({.offset = offset + offsetof(Table<Entry>, entries), .to = image()});
  }
};

}  // namespace gradus::object
