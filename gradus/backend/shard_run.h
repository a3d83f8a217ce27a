/// ShardRun: the shards of a batch, while a program runs on them. A strategy makes one for each call; programs of
/// shards are compiled for it (CompileOptions::shards) and run with it (RunContext::shards).
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include "gradus/base/ref.h"
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/cuts.h"
#include "gradus/tensor/device.h"
#include "gradus/tensor/shape.h"

namespace gradus {

class ShardExchange;

namespace detail::inline rooms {

class ShardRun {
 public:
  /// A shard that this process computes.
  struct Shard {
    int number = 0;                           // among all of the batch
    int length = 0;                           // the index of its length, 0 or 1
    int replica = 0;                          // among this process's
    std::vector<Ref<Buffer>> arguments = {};  // by OfShard::argument; those of the other length are empty
  };
  /// A summand of a shard.
  struct Part {
    int shard;
    Ref<Buffer> value;
  };

  /// A sum over all shards of the batch, by the tree over their numbers.
  struct Sum {
    Spec spec;
    std::vector<Part> parts;  // those of this process, by number, in memory of the host
    Ref<Buffer> result = {};
    Cuts cuts = {};              // if each rank gets a part of it: where; else empty
    bool narrow = false;         // as of AllReduce
    std::string_view name = {};  // unique among the sums of its program
  };

  /// A value that is divided among ranks, to be whole on every rank.
  struct Gathered {
    DType dtype;
    Cuts cuts;
    Ref<Buffer> part;  // this rank's, in memory of the host
    Ref<Buffer> result = {};
  };

  /// A value that a program is bound to and all processes share, such as a Variable.
  struct Common {
    std::string name;  // for messages
    std::uint64_t hash;
  };

  /// The rank that computes a shard, and the index of its length.
  struct Whereabouts {
    int number, rank, length;
  };
  std::vector<Shard> shards;            // by number
  std::vector<Whereabouts> all_shards;  // that have rows, those of other processes included
  std::vector<Device> replicas;         // where those of this process compute
  Device common_device = {};            // where values that all shards share are computed
  int rank = 0, ranks = 1;              // of processes that run together
  bool divides_state = false;           // each rank keeps a part of the state of optimizers (divided_state.h)
  std::int64_t step = 0;                // how many calls the strategy has run before
  ShardExchange* exchange = nullptr;    // never null while a program runs
  /// Results that differ from shard to shard: those of all shards of this process, by number, under that of the first.
  std::unordered_map<const Buffer*, std::vector<Part>> results;
};

}  // namespace detail::inline rooms

/// The exchange of values between the shards of a batch, on one process or several: sums in memory, by a function of
/// the user, or over ranks. Ranks call it alike, in one order.
class ShardExchange {
 public:
  virtual ~ShardExchange() = default;

  /// Makes the results.
  virtual void add_up(std::span<ShardRun::Sum> sums, std::int64_t step) = 0;
  /// Makes the results; one process has the whole already.
  virtual void gather(std::span<ShardRun::Gathered> values) {
    for (ShardRun::Gathered& value : values) value.result = value.part;
  }
  /// `parts`: all shards that have rows, by number, with the given bytes each. Fills those of other processes.
  virtual void share(std::span<ShardRun::Part>, std::span<const std::int64_t>) {}

  /// A program is bound to these for the first time: throws unless all processes have the same.
  virtual void compare(std::span<const ShardRun::Common>) {}
  /// A program with this fingerprint runs for the first time: throws unless that is so in all processes.
  virtual void compare_program(std::uint64_t) {}
  /// The program has all its sums, and nothing has been assigned: throws unless all processes have come so far.
  virtual void vote_commit() {}

  /// True if sums may be added by the devices, in any order.
  virtual bool may_add_on_devices() const { return false; }
  /// True if sums may begin before all parts of all of them are ready. Then, before add_up:
  virtual bool begins_early() const { return false; }
  /// These sums will be asked for, in this order; their parts come later.
  virtual void expect(std::span<ShardRun::Sum>) {}
  /// Sum `i` of the expected ones has its parts.
  virtual void sum_is_ready(std::size_t) {}
  /// Moves all that can be moved without waiting.
  virtual void drive() {}
};

}  // namespace gradus
