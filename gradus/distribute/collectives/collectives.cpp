/// A call is cut into pieces, and each rank owns a part of each piece: it gets the partial sums of its part from all
/// others, adds them, and sends the result to all. Small values are sent whole, and every rank adds them: one message
/// less to wait for.
#include "gradus/distribute/collectives/collectives.h"
#include <algorithm>
#include <cstring>
#include "gradus/base/divide.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

constexpr std::int64_t small_bytes = 16 << 10;  // of values that are sent whole
constexpr int small_ranks = 8;

struct Part {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

std::int64_t bytes_of(DType type, std::int64_t count) { return size_of(type) * count; }

std::span<const std::byte> bytes_at(const std::byte* values, std::int64_t from, std::int64_t bytes) {
  return {values + from, static_cast<std::size_t>(bytes)};
}
std::span<std::byte> bytes_at(std::byte* values, std::int64_t from, std::int64_t bytes) {
  return {values + from, static_cast<std::size_t>(bytes)};
}

/// The fields that all pieces of a call share.
struct Call {
  DType type;
  int shards;
  std::vector<const std::byte*> own;  // the values of this rank's shards
  std::byte* out;
  std::int64_t out_begin;  // which element `out` begins with
  bool sums, gathers, is_small, narrow;
  std::string name;

  DType type_of(ShardRange node) const { return type_of_partial(type, node, narrow); }

  std::byte* out_at(std::int64_t element) const { return out + bytes_of(type, element - out_begin); }
};

/// One piece of one call.
class Piece {
 public:
  Piece(Transport& transport, const Call& call, std::vector<Part> parts, Tag first, Tag second, std::int64_t& sent)
      : transport_(transport),
        call_(call),
        sent_bytes_(sent),
        parts_(std::move(parts)),
        scatter_(first),
        gather_(second),
        exchange_(transport, call.name) {
    if (call_.sums) start_sum();
    else start_gather();
  }

  /// True if it is done.
  bool advance() {
    if (!exchange_.is_done()) return false;
    if (is_summing_) {
      finish_sum();
      if (call_.gathers && !call_.is_small) start_gather();
      return exchange_.is_done();
    }
    return true;
  }
  std::string late(std::chrono::milliseconds timeout) const { return exchange_.late(timeout); }

 private:
  int ranks() const { return transport_.ranks(); }
  const Part& part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  /// The part that this rank adds up; for small values, everything.
  Part summed_part() const {
    return call_.is_small ? Part{parts_.front().begin, parts_.back().end} : part(transport_.rank());
  }
  std::vector<ShardRange> nodes(int rank) const {
    return nodes_of(shards_of(rank, ranks(), call_.shards), call_.shards);
  }
  std::int64_t bytes_of_sums(int rank, std::int64_t count) const {
    std::int64_t bytes = 0;
    for (const ShardRange node : nodes(rank)) bytes += bytes_of(call_.type_of(node), count);
    return bytes;
  }

  void start_sum() {
    is_summing_ = true;
    const int self = transport_.rank();
    const Part mine = summed_part();
    std::int64_t arriving = 0;
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != self) arriving += bytes_of_sums(rank, mine.count());
    arrived_.resize(static_cast<std::size_t>(arriving));
    std::byte* at = arrived_.data();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == self || mine.count() == 0) continue;
      const std::int64_t bytes = bytes_of_sums(rank, mine.count());
      exchange_.receive(rank, scatter_, bytes_at(at, 0, bytes));
      at += bytes;
    }
    pack_sums();
    for (int step = 1; step < ranks(); ++step) {  // each rank begins with its neighbour: none is first for all
      const int rank = (self + step) % ranks();
      const Part theirs = call_.is_small ? mine : part(rank);
      if (theirs.count() > 0) send(rank, scatter_, packed_for(theirs));
    }
  }

  /// Partial sums for other ranks' parts: those of one shard are its values in place, else they are packed.
  void pack_sums() {
    const auto own_nodes = nodes(transport_.rank());
    is_in_place_ = own_nodes.size() == 1 && own_nodes[0].count() == 1;
    if (is_in_place_) return;
    std::int64_t bytes = 0;
    for (const Part& each : parts_) bytes += bytes_of_sums(transport_.rank(), each.count());
    packed_.resize(static_cast<std::size_t>(bytes));
    std::byte* at = packed_.data();
    const auto pack = [&](const Part& each) {
      places_.push_back({each.begin, at});
      for (const ShardRange node : own_nodes) {
        const DType wide = call_.type_of(node);
        if (each.count() > 0)
          tree_sum(call_.type, call_.shards, node, values_of(node), each.begin, each.end, at, wide, call_.narrow);
        at += bytes_of(wide, each.count());
      }
    };
    if (call_.is_small) return pack(summed_part());
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != transport_.rank()) pack(part(rank));
  }

  std::span<const std::byte> packed_for(const Part& part) const {
    if (is_in_place_)
      return bytes_at(call_.own[0], bytes_of(call_.type, part.begin), bytes_of(call_.type, part.count()));
    const auto found = std::ranges::find(places_, part.begin, &Place::begin);
    return bytes_at(static_cast<const std::byte*>(found->at), 0, bytes_of_sums(transport_.rank(), part.count()));
  }

  /// The values of this rank's shards in `node`.
  std::vector<PartialSum> values_of(ShardRange node) const {
    const ShardRange own = shards_of(transport_.rank(), ranks(), call_.shards);
    std::vector<PartialSum> out;
    for (int shard = node.begin; shard < node.end; ++shard)
      out.push_back({{shard, shard + 1}, call_.own[static_cast<std::size_t>(shard - own.begin)]});
    return out;
  }

  void finish_sum() {
    is_summing_ = false;
    const Part mine = summed_part();
    if (mine.count() == 0) return;
    std::vector<PartialSum> sums;
    const std::byte* at = arrived_.data();
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const ShardRange node : nodes(rank)) {
        if (rank == transport_.rank()) {
          for (const PartialSum& each : values_of(node)) sums.push_back(each);
          continue;
        }
        sums.push_back({node, at, mine.begin});
        at += bytes_of(call_.type_of(node), mine.count());
      }
    }
    tree_sum(call_.type, call_.shards, {0, call_.shards}, sums, mine.begin, mine.end, call_.out_at(mine.begin),
             call_.type, call_.narrow);
    arrived_ = {};
    packed_ = {};
  }

  void start_gather() {
    const int self = transport_.rank();
    for (int step = 1; step < ranks(); ++step) {
      const int rank = (self + ranks() - step) % ranks();
      const Part theirs = part(rank);
      if (theirs.count() > 0)
        exchange_.receive(rank, gather_, bytes_at(call_.out_at(theirs.begin), 0, bytes_of(call_.type, theirs.count())));
    }
    const Part mine = part(self);
    for (int step = 1; step < ranks() && mine.count() > 0; ++step)
      send((self + step) % ranks(), gather_,
           bytes_at(static_cast<const std::byte*>(call_.out_at(mine.begin)), 0, bytes_of(call_.type, mine.count())));
  }

  void send(int rank, Tag tag, std::span<const std::byte> bytes) {
    exchange_.send(rank, tag, bytes);
    sent_bytes_ += static_cast<std::int64_t>(bytes.size());
  }

  struct Place {
    std::int64_t begin;
    const std::byte* at;
  };
  Transport& transport_;
  const Call& call_;
  std::int64_t& sent_bytes_;
  const std::vector<Part> parts_;  // by rank
  const Tag scatter_, gather_;
  std::vector<std::byte> arrived_, packed_;  // before the exchange, which is done with them when it ends
  std::vector<Place> places_;
  bool is_summing_ = false, is_in_place_ = false;
  Exchange exchange_;
};

}  // namespace

class Collective {
 public:
  Collective(Collectives& owner, Call call, Cuts cuts) : owner_(owner), call_(std::move(call)), cuts_(std::move(cuts)) {
    const auto ranks = static_cast<std::int64_t>(cuts_.size()) - 1;
    std::int64_t longest = 0;
    for (std::size_t r = 0; r + 1 < cuts_.size(); ++r) longest = std::max(longest, cuts_[r + 1] - cuts_[r]);
    elements_of_piece_ = std::max<std::int64_t>(64, owner.bytes_of_piece_ / ranks / size_of(call_.type));
    if (call_.is_small) elements_of_piece_ = std::max(elements_of_piece_, longest);  // all of it at once
    pieces_ = divide_up(longest, elements_of_piece_);
    for (std::int64_t piece = 0; piece < pieces_; ++piece) tags_.push_back({owner.next_tag(), owner.next_tag()});
    fill();
  }

  bool is_done() const { return begun_ == pieces_ && under_way_.empty(); }
  /// True if a piece came to its end.
  bool advance() {
    const auto before = under_way_.size();
    for (auto piece = under_way_.begin(); piece != under_way_.end();)
      piece = piece->advance() ? under_way_.erase(piece) : std::next(piece);
    const bool moved = under_way_.size() != before;
    if (moved) fill();
    return moved;
  }
  std::string late(std::chrono::milliseconds timeout) const {
    return under_way_.empty() ? call_.name : under_way_.front().late(timeout);
  }

 private:
  static constexpr std::size_t most_pieces = 2;  // under way: one is added up while the next one arrives

  void fill() {
    while (begun_ < pieces_ && under_way_.size() < most_pieces) {
      std::vector<Part> parts;
      for (std::size_t r = 0; r + 1 < cuts_.size(); ++r) {
        const std::int64_t begin = std::min(cuts_[r] + begun_ * elements_of_piece_, cuts_[r + 1]);
        parts.push_back({begin, std::min(begin + elements_of_piece_, cuts_[r + 1])});
      }
      const auto& [first, second] = tags_[static_cast<std::size_t>(begun_++)];
      under_way_.emplace_back(owner_.transport_, call_, std::move(parts), first, second, owner_.sent_bytes_);
    }
  }

  Collectives& owner_;
  const Call call_;
  const Cuts cuts_;
  std::int64_t elements_of_piece_ = 0, pieces_ = 0, begun_ = 0;
  std::vector<std::pair<Tag, Tag>> tags_;
  std::list<Piece> under_way_;
};

Collectives::Collectives(Transport& transport, int shards, std::chrono::milliseconds timeout,
                         std::int64_t bytes_of_piece)
    : transport_(transport), shards_(shards), timeout_(timeout), bytes_of_piece_(bytes_of_piece) {
  require(shards >= transport.ranks() && shards <= 16'384, "Collectives: there are ", shards,
          " shards, expected at least one for each of the ", transport.ranks(), " ranks, and at most 16384");
  internal_check(bytes_of_piece > 0, "pieces of no bytes");
}

Collectives::~Collectives() = default;

void Collectives::begin_step(std::uint64_t step) {
  internal_check(under_way_.empty(), "a step begins while exchanges of the last one are under way");
  step_ = step;
  slot_ = 0;
  calls_ = 0;
}

Tag Collectives::next_tag() {
  require<ResourceExhausted>(slot_ < Tag::slots, "more than ", Tag::slots,
                             " messages between two ranks in one step: take larger pieces");
  return {static_cast<std::uint32_t>(step_ % Tag::steps), slot_++};
}

Collective* Collectives::start(DType type, std::span<const std::byte* const> own, const Cuts& cuts, std::byte* out,
                               std::int64_t out_begin, bool sums, bool gathers, std::string name, bool narrow) {
  internal_check(
      static_cast<int>(cuts.size()) == transport_.ranks() + 1 && std::ranges::is_sorted(cuts) && cuts[0] == 0,
      "cuts that are not those of the group");
  internal_check(!sums || static_cast<int>(own.size()) == own_shards().count(), name, " of ", own.size(),
                 " shards where this rank has ", own_shards().count());
  if (sums) summed_in(type);  // refuses types without sums
  const bool is_small =
      sums && gathers && transport_.ranks() <= small_ranks && bytes_of(type, cuts.back()) <= small_bytes;
  const std::string title = text(name, " ", ++calls_, " of step ", step_);
  under_way_.emplace_back(
      *this, Call{type, shards_, {own.begin(), own.end()}, out, out_begin, sums, gathers, is_small, narrow, title},
      cuts);
  return &under_way_.back();
}

Collective* Collectives::start_all_reduce(DType type, std::span<const std::byte* const> own, std::span<std::byte> out,
                                          bool narrow) {
  const auto count = static_cast<std::int64_t>(out.size()) / size_of(type);
  return start(type, own, even_cuts(count, transport_.ranks()), out.data(), 0, true, true, "all_reduce", narrow);
}

void Collectives::all_reduce(DType type, std::span<const std::byte* const> own, std::span<std::byte> out) {
  finish(start_all_reduce(type, own, out));
}

void Collectives::reduce_scatter(DType type, std::span<const std::byte* const> own, const Cuts& cuts,
                                 std::span<std::byte> out) {
  finish(start_reduce_scatter(type, own, cuts, out));
}

Collective* Collectives::start_reduce_scatter(DType type, std::span<const std::byte* const> own, const Cuts& cuts,
                                              std::span<std::byte> out, bool narrow) {
  const auto rank = static_cast<std::size_t>(transport_.rank());
  internal_check(static_cast<std::int64_t>(out.size()) == bytes_of(type, cuts[rank + 1] - cuts[rank]),
                 "reduce_scatter into another size than that of the rank's part");
  return start(type, own, cuts, out.data(), cuts[rank], true, false, "reduce_scatter", narrow);
}

void Collectives::all_gather(DType type, const Cuts& cuts, std::span<std::byte> all) {
  finish(start_all_gather(type, cuts, all));
}

Collective* Collectives::start_all_gather(DType type, const Cuts& cuts, std::span<std::byte> all) {
  internal_check(static_cast<std::int64_t>(all.size()) == bytes_of(type, cuts.back()), "all_gather into another size");
  return start(type, {}, cuts, all.data(), 0, false, true, "all_gather");
}

void Collectives::broadcast(int root, std::span<std::byte> bytes) {
  internal_check(root >= 0 && root < transport_.ranks(), "broadcast from rank ", root);
  Cuts cuts(static_cast<std::size_t>(transport_.ranks()) + 1, 0);
  std::fill(cuts.begin() + root + 1, cuts.end(), static_cast<std::int64_t>(bytes.size()));
  finish(start(u8, {}, cuts, bytes.data(), 0, false, true, "broadcast"));
}

void Collectives::pass(int from, int to, std::span<std::byte> bytes) {
  internal_check(from != to, "rank ", from, " passes bytes to itself");
  Exchange exchange(transport_, text("message ", ++calls_, " of step ", step_));
  const Tag tag = next_tag();
  if (rank() == from) exchange.send(to, tag, bytes);
  if (rank() == to) exchange.receive(from, tag, bytes);
  exchange.finish(timeout_);
}

void Collectives::barrier() {
  const std::string title = text("barrier ", ++calls_, " of step ", step_);
  const int rank = transport_.rank(), ranks = transport_.ranks();
  for (int distance = 1; distance < ranks; distance *= 2) {  // after each round it knows of twice as many
    std::byte own{1}, other{0};
    Exchange exchange(transport_, title);
    const Tag tag = next_tag();
    exchange.receive((rank + ranks - distance) % ranks, tag, {&other, 1});
    exchange.send((rank + distance) % ranks, tag, {&own, 1});
    exchange.finish(timeout_);
  }
}

bool Collectives::advance() {
  const bool moved = transport_.progress();
  return advance_pieces() || moved;
}

bool Collectives::advance_pieces() {
  bool any = false, moved = true;
  while (moved) {  // a piece that follows another may have nothing to wait for
    moved = false;
    for (Collective& each : under_way_) moved |= each.advance();
    any |= moved;
  }
  return any;
}

bool Collectives::is_done(const Collective* started) const { return started->is_done(); }

void Collectives::finish(Collective* started) {
  const auto found = std::ranges::find_if(under_way_, [&](const Collective& each) { return &each == started; });
  internal_check(found != under_way_.end(), "a collective is finished twice");
  try {
    await(
        transport_, in(timeout_),
        [&] {
          advance_pieces();
          return found->is_done();
        },
        [&] { return found->late(timeout_); });
  } catch (...) {
    under_way_.clear();  // closes the transport
    throw;
  }
  under_way_.erase(found);
}

}  // namespace gradus
