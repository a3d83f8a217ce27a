/// Two threads that are ranks: messages to and fro, many small ones at once, large ones.
#include "gradus/distribute/messages/network_rates.h"
#include <algorithm>
#include <array>
#include <future>
#include <thread>
#include "gradus/base/clock.h"
#include "gradus/base/error.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/rooms.h"
#include "gradus/distribute/messages/ucx.h"

namespace gradus {
namespace {

constexpr int round_trips = 200, warming_trips = 20;
constexpr std::uint32_t small_messages = 64;  // at once
constexpr int bursts = 10;
constexpr std::size_t large_bytes = std::size_t{4} << 20;
constexpr int large_messages = 12;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// One of two ranks. Both do the same in the same order; the first one looks at the clock.
class Rank {
 public:
  Rank(Transport& transport, std::chrono::milliseconds timeout) : transport_(transport), timeout_(timeout) {}

  NetworkRates run() {
    NetworkRates rates;
    for (int i = 0; i < warming_trips; ++i) (void)to_and_fro(8, 1);
    rates.latency = median_of(round_trips, [&] { return to_and_fro(8, 1) / 2; });
    // In a burst all messages but the first follow while others are under way.
    const double burst = median_of(bursts, [&] { return to_and_fro(8, small_messages) / 2; });
    rates.message_seconds = std::max(0.0, burst - rates.latency) / (small_messages - 1);
    const double large = median_of(large_messages, [&] { return to_and_fro(large_bytes, 1) / 2; });
    rates.bytes_per_second = static_cast<double>(large_bytes) / std::max(large - rates.latency, 1e-9);
    return rates;
  }

 private:
  static double median_of(int times, const std::function<double()>& seconds) {
    std::vector<double> all;
    for (int i = 0; i < times; ++i) all.push_back(seconds());
    return median(std::move(all));
  }
  /// Seconds until as many messages as were sent have come back.
  double to_and_fro(std::size_t bytes, std::uint32_t messages) {
    buffer_.resize(bytes * messages);
    const double begin = steady_seconds();
    const bool begins = transport_.rank() == 0;
    exchange(bytes, messages, begins);
    exchange(bytes, messages, !begins);
    return steady_seconds() - begin;
  }
  void exchange(std::size_t bytes, std::uint32_t messages, bool sends) {
    Exchange all(transport_, "a measurement");
    for (std::uint32_t i = 0; i < messages; ++i) {
      const std::span<std::byte> part = std::span(buffer_).subspan(i * bytes, bytes);
      const Tag tag{.step = step_, .slot = i};
      if (sends) all.send(1 - transport_.rank(), tag, part);
      else all.receive(1 - transport_.rank(), tag, part);
    }
    step_ = (step_ + 1) % Tag::steps;
    all.finish(timeout_);
  }

  Transport& transport_;
  const std::chrono::milliseconds timeout_;
  std::vector<std::byte> buffer_;
  std::uint32_t step_ = 0;
};

}  // namespace

NetworkRates measure_network(std::string name, const MakeTransport& make, std::chrono::milliseconds timeout) {
  NetworkRates rates;
  std::array<std::promise<std::string>, 2> promised;
  std::array<std::shared_future<std::string>, 2> addresses{promised[0].get_future().share(),
                                                           promised[1].get_future().share()};
  std::array<std::string, 2> problems;
  const auto rank = [&](int own) {
    const auto self = static_cast<std::size_t>(own);
    bool is_open = false;
    try {
      const std::unique_ptr<Transport> transport = make();
      const std::string address = transport->open();
      promised[self].set_value(address);
      is_open = true;
      Group group{.rank = own, .members = {}};
      for (const auto& each : addresses) {
        require<Unavailable>(each.wait_for(timeout) == std::future_status::ready, "the other end did not open");
        require<Unavailable>(!each.get().empty(), "the other end did not open");
        group.members.push_back({text("rank ", group.members.size()), each.get()});
      }
      transport->join(group);
      const NetworkRates found = Rank(*transport, timeout).run();
      if (own == 0) rates = found;
      transport->close("");
    } catch (const std::exception& error) {
      problems[self] = error.what();
      if (!is_open) promised[self].set_value("");
    }
  };
  {
    const NoSignals quiet;
    std::jthread other(rank, 1);
    rank(0);
  }
  rates.name = std::move(name);
  rates.problem = problems[0].empty() ? problems[1] : problems[0];
  return rates;
}

std::vector<NetworkRates> measure_local_networks() {
  return {
      measure_network("shared memory", [] { return ucx_transport({.transports = shared_memory_transports()}); }),
      measure_network("TCP over loopback", [] { return ucx_transport({.transports = "tcp,self", .devices = "lo"}); })};
}

}  // namespace gradus
