/// Images of branches and loops in object files, for object/standalone_control.cpp.
#pragma once
#include <span>
#include "gradus/backend/cpu/object/table_images.h"
#include "gradus/backend/cpu/run/nested.h"

namespace gradus::construct {

using object::Image;

/// InvalidArgument that names the op, if something in it cannot come along.
Image image_of(const NestedProgram& program);

/// A whole of plain numbers in the making, whose tables and pointers are set one by one.
template <class Whole> class WholeImage {
 public:
  explicit WholeImage(const Whole& whole) : whole_(whole), image_(DataImage::of_bytes(&whole, sizeof whole)) {}

  template <class Part> void point(const Part* Whole::* member, Image to) {
    if (to) image_.pointers.push_back({.offset = offset_of(member), .to = std::move(to)});
  }
  template <class Entry> void set(object::Table<Entry> Whole::* member, std::vector<Entry> entries) {
    object::TableImage<Entry>{std::move(entries), {}}.set(image_, whole_, member);
  }
  template <class Entry> void set(object::Table<Entry> Whole::* member, const object::TableImage<Entry>& table) {
    table.set(image_, whole_, member);
  }
  DataImage take() { return std::move(image_); }

 private:
  std::size_t offset_of(auto member) const {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&(whole_.*member)) -
                                    reinterpret_cast<const std::byte*>(&whole_));
  }
  Whole whole_;
  DataImage image_;
};

inline std::vector<std::int64_t> as_numbers(std::span<const int> slots) { return {slots.begin(), slots.end()}; }

}  // namespace gradus::construct
