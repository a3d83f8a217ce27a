/// OutermostCall: what runs within the call of a model, or is read there to be trained, must be found by the walk over
/// the model; else it would be neither trained nor saved, and nobody would say so.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>
#include "gradus/function/variable.h"

namespace gradus {

class Layer;

/// What a walk over a layer found: ids, sorted.
struct FoundParts {
  explicit FoundParts(const Layer& root);
  /// Whether a walk would find the same now.
  bool holds(const Layer& root) const;
  std::vector<std::uint64_t> layers, variables;

 private:
  mutable std::atomic<std::uint64_t> handles_;  // whereabouts::changes() at which that was so
  std::uint64_t seen_, whole_;                  // numbers of the structure, without and with what is hidden
  bool has_hidden_models_;
};

/// What the last walk found. A copy of the layer has not been walked.
class FoundCache {
 public:
  FoundCache() = default;
  FoundCache(const FoundCache&) {}
  std::shared_ptr<const FoundParts> get() const;
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
  /// Told of what is read while a call is going on.
  struct Reading final : ReadListener {
    void on_read(VariableCell& cell, const Tensor&) override { on_read_within(cell); }
    void on_read_within(VariableCell& cell) override;
    bool knows(const Tensor&) const override { return false; }
  };
  static thread_local OutermostCall* current_;
  void begin(const Layer& root, bool listens);
  void check(const Layer& layer);
  void check(const VariableCell& cell);
  bool finds(std::uint64_t id, std::vector<std::uint64_t> FoundParts::* list);
  const Layer* root_ = nullptr;  // null: part of the one around
  bool listens_ = false;         // to what is read
  std::shared_ptr<const FoundParts> found_;
  OutermostCall* outer_ = nullptr;
  std::optional<Reading> reading_;
};

/// While a layer is built: first values may follow from Variables of others, so what is read does not matter.
struct BuildingScope : OutermostCall {
  explicit BuildingScope(const Layer& layer) : OutermostCall(layer, Kind::building) {}
};

}  // namespace gradus
