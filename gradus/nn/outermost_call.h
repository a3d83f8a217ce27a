/// OutermostCall: layers that run within the call of a model, and Variables that are read there to be trained, must be
/// found by the walk over the model. Otherwise they would silently be neither trained nor saved.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>
#include "gradus/function/variable.h"

namespace gradus {

namespace detail::inline rooms {

class Layer;

/// The result of a walk over a layer: sorted ids.
struct FoundParts {
  explicit FoundParts(const Layer& root);
  /// True if a walk would find the same now.
  bool holds(const Layer& root) const;
  std::vector<std::uint64_t> layers, variables;  // ids of layers, ids of variables

 private:
  mutable std::atomic<std::uint64_t> handles_;  // value of whereabouts::changes() at the last check
  std::uint64_t seen_, whole_;                  // numbers of the structure, without and with hidden parts
  bool has_hidden_models_;
};

/// The result of the last walk. A copy of the layer has not been walked.
class FoundCache {
 public:
  FoundCache() = default;
  FoundCache(const FoundCache&) {}
  /// The result; null if there is none.
  std::shared_ptr<const FoundParts> get() const;
  /// Stores a result.
  void set(std::shared_ptr<const FoundParts> found);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const FoundParts> found_;
};

/// A call on this thread: the outermost one, or a part of it.
class OutermostCall {
 public:
  /// InvalidArgument if the outermost layer does not find `layer`, unless that has nothing to train or save.
  explicit OutermostCall(const Layer& layer);
  ~OutermostCall();
  OutermostCall(const OutermostCall&) = delete;

 protected:
  enum class Kind { call, building };
  OutermostCall(const Layer& layer, Kind kind);

 private:
  /// Listens to reads of Variables while a call is going on.
  struct Reading final : ReadListener {
    void on_read(VariableCell& cell, const Tensor&) override { on_read_within(cell); }
    void on_read_within(VariableCell& cell) override;
    bool knows(const Tensor&) const override { return false; }
  };
  void begin(const Layer& root, bool listens);
  void check(const Layer& layer);
  void check(const VariableCell& cell);
  bool finds(std::uint64_t id, std::vector<std::uint64_t> FoundParts::* list);
  const Layer* root_ = nullptr;  // null: part of the call around it
  bool listens_ = false;         // to reads
  std::shared_ptr<const FoundParts> found_;
  OutermostCall* outer_ = nullptr;
  std::optional<Reading> reading_;
};

/// Active while a layer is built: first values may depend on Variables of others, so reads do not matter.
struct BuildingScope : OutermostCall {
  explicit BuildingScope(const Layer& layer) : OutermostCall(layer, Kind::building) {}
};

}  // namespace detail::inline rooms

}  // namespace gradus
