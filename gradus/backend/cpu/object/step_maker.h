/// One step of an object file: it is compiled, bound to one thread, and the jobs that it runs are written down.
#pragma once
#include <map>
#include <string>
#include <vector>
#include "gradus/backend/cpu/codegen/object_module.h"
#include "gradus/backend/cpu/object/table_images.h"
#include "gradus/backend/cpu/run/binding.h"
#include "gradus/backend/object.h"
#include "gradus/base/divide.h"
#include "gradus/base/numbered.h"

namespace gradus::object {

/// Bytes, and how many may be read and written behind the memory of kernels.
inline constexpr std::int64_t line = 64;

/// Places things contiguously. Behind each is room enough for one element, which C has where there are none.
struct Space {
  std::int64_t end = 0;
  std::int64_t take(std::int64_t bytes) { return std::exchange(end, round_up(end + bytes + line, line)); }
};

/// Where the parts of the state lie, which all steps of an object share.
struct StatePlaces {
  std::vector<std::int64_t> fields;
  std::int64_t random_state = -1, failure = 0;  // -1: no step draws random numbers
  std::int64_t workspace = 0;                   // the rest of the state
};

/// The type of the value that a step returns.
cpu_backend::Returns returns_of(const ObjectStep& step);

/// Writes copies into a table; none of nothing.
void add_copy(TableImage<CopyEntry>& table, const Address& to, const Address& from, std::int64_t bytes);
/// With bytes that are part of the object.
void add_copy_of(TableImage<CopyEntry>& table, const Address& to, const Image& from, std::int64_t bytes);

/// The common parts of an object's steps: code and constants are in it once.
struct ObjectParts {
  std::vector<std::string> objects;  // generated code
  std::map<KernelFunction, std::string> names;
  std::map<const void*, Image> constants;
  std::vector<std::string> failures;  // the messages of failures 1, 2, ...
  cpu_backend::TileSet tiles;         // that steps call

  Image bytes_of(const Ref<Buffer>& buffer, std::int64_t bytes);
};

class StepMaker {
 public:
  StepMaker(const ObjectStep& step, const StatePlaces& state, ObjectParts& parts)
      : step_(step), state_(state), parts_(parts) {}

  /// The tables of the step. It keeps the generated code alive, whose addresses are the keys of names.
  Image make();
  std::int64_t workspace_bytes() const { return workspace_.end + line; }  // from where it begins to a line's begin

 private:
  const Graph& graph() const { return program_->graph(); }
  void set_slot(int slot, const Address& address) { slots_.insert_or_assign(slot, address); }
  void add_inputs();
  void add_outputs();
  void store(int k, const Address& to, bool may_be_read);
  const OutputSource& source_of(int k) const;
  std::size_t place_of_result(std::size_t k) const;
  void add_jobs();
  std::string failure_of(const Job& job) const;
  Image image_of_data(std::size_t t);
  void gather_code(const Lowered& lowered);
  void fill_slots();
  Image step_image() const;

  const ObjectStep& step_;
  const StatePlaces& state_;
  ObjectParts& parts_;
  std::shared_ptr<const CpuProgram> program_;
  std::shared_ptr<const Binding> binding_;
  Space workspace_;
  std::int64_t slot_table_ = 0, arena_ = 0, key_ = 0;
  std::map<int, Address> slots_;
  std::map<int, Image> constant_slots_;
  std::map<const void*, Image> data_;
  TableImage<SlotEntry> slot_entries_;
  TableImage<CopyEntry> before_, staged_, after_;
  TableImage<JobEntry> jobs_;
};

}  // namespace gradus::object
