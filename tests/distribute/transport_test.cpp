/// Transports of one process, checksums, and every fault at every message of a small job: each ends in the right sums
/// or in an error that says so, and never waits past its deadline.
#include <gtest/gtest.h>
#include <thread>
#include "gradus/base/hash.h"
#include "tests/distribute/checked_transport.h"
#include "tests/distribute/faulty_transport.h"
#include "tests/distribute/summands.h"
#include "tests/distribute/threads_as_ranks.h"
#include "tests/errors.h"

namespace gradus::transport_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(InProcess, MessagesAreKnownByTheirTags) {
  expect_all_well(run_as_threads(2, [](Transport& transport) {
    const Bytes first = bytes_of("first"), second = bytes_of("second");
    Bytes into_first(5), into_second(6);
    Exchange exchange(transport, "a test");
    if (transport.rank() == 0) {
      exchange.send(1, {3, 1}, second);
      exchange.send(1, {3, 0}, first);
    } else {
      exchange.receive(0, {3, 0}, into_first);
      exchange.receive(0, {3, 1}, into_second);
    }
    exchange.finish(10s);
    if (transport.rank() == 1) {
      EXPECT_EQ(text_of(into_first), "first");
      EXPECT_EQ(text_of(into_second), "second");
    }
  }));
}

TEST(InProcess, GroupsThatAreNoneAreRefused) {
  const auto network = in_process_network();
  const auto a = in_process_transport(network), b = in_process_transport(network);
  const std::vector<std::string> addresses = {a->open(), b->open()};
  expect_says(error_of<InvalidArgument>([&] { a->join(group_of(2, addresses)); }), "`rank` is 2, expected 0 .. 1");
  expect_says(error_of<InvalidArgument>([&] { a->join(group_of(1, addresses)); }), "has the address of another");
  expect_says(error_of<InvalidArgument>([&] { a->join(group_of(0, {addresses[0], "9"})); }), "no rank of this process");
  expect_says(error_of<InvalidArgument>([&] { a->join(group_of(0, addresses, 0)); }), "`generation` is 0");
}

/// A rank that has left in order sends nothing more; a rank that needs more of it does not wait for the timeout.
TEST(InProcess, AnExchangeWithARankThatHasLeftInOrderEndsSoon) {
  std::atomic<bool> is_over = false;
  const auto problems = run_as_threads(2, [&](Transport& transport) {
    const Bytes first = bytes_of("first");
    Bytes into_first(5), into_second(6);
    Exchange exchange(transport, "a test");
    if (transport.rank() == 1) {
      exchange.send(0, {3, 0}, first);
      exchange.finish(10s);
      while (!is_over) std::this_thread::sleep_for(1ms);
      return;
    }
    const auto begin = Clock::now();
    transport.note_left(1, "step 7");
    exchange.receive(1, {3, 0}, into_first);
    exchange.finish(60s);
    EXPECT_EQ(text_of(into_first), "first");
    Exchange other(transport, "another test");
    other.receive(1, {3, 1}, into_second);
    expect_says(error_of<Unavailable>([&] { other.finish(60s); }),
                "another test: rank 1 (here) has left in order after step 7: ");
    EXPECT_LT(Clock::now() - begin, 30s);
    EXPECT_TRUE(transport.is_failed_by_peers());
    is_over = true;
  });
  expect_all_well(problems);
}

TEST(InProcess, AFailureFromOutsideEndsAWaitAtOnce) {
  const auto begin = Clock::now();
  Transport* waiting = nullptr;
  std::atomic<bool> is_there = false;
  std::thread meeting;
  const auto problems = run_as_threads(2, [&](Transport& transport) {
    if (transport.rank() == 1) {
      waiting = &transport;
      is_there = true;
      Collectives(transport, 2, 30s).barrier();
    } else {
      while (!is_there) std::this_thread::yield();
      meeting = std::thread([&] { waiting->fail("rank 0 (here) gives no sign of life"); });
      meeting.join();
    }
  });
  EXPECT_EQ(problems[1], "rank 0 (here) gives no sign of life");
  EXPECT_LT(Clock::now() - begin, 20s);
}

TEST(InProcess, WhoLeavesIsToldToThoseThatWait) {
  const auto problems = run_as_threads(3, [](Transport& transport) {
    if (transport.rank() == 1) throw InvalidArgument("no such file");
    Collectives(transport, 3, 30s).barrier();
  });
  expect_says(problems[0] + problems[2], "rank 1 (here) has left the group: no such file");
}

TEST(InProcess, RanksFormAgainWithoutTheKilledOne) {
  const auto network = in_process_network();
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::string> old_addresses, new_addresses(3);
  for (int rank = 0; rank < 3; ++rank) {
    transports.push_back(in_process_transport(network));
    old_addresses.push_back(transports.back()->open());
  }
  for (int rank = 0; rank < 3; ++rank) transports[static_cast<std::size_t>(rank)]->join(group_of(rank, old_addresses));
  Exchange late(*transports[0], "a late message");
  const Bytes old = bytes_of("old");
  late.send(1, {1, 0}, old);
  EXPECT_TRUE(late.is_done());
  kill_in_process(*network, old_addresses[2]);
  for (const std::size_t rank : {0u, 1u})
    EXPECT_EQ(error_of<Unavailable>([&] { transports[rank]->progress(); }), "rank 2 (here) was killed");

  std::vector<std::string> addresses = {transports[0]->open(), transports[1]->open()};
  for (int rank = 0; rank < 2; ++rank) transports[static_cast<std::size_t>(rank)]->join(group_of(rank, addresses, 2));
  std::thread other([&] { EXPECT_NO_THROW(Collectives(*transports[1], 2, 10s).barrier()); });
  EXPECT_NO_THROW(Collectives(*transports[0], 2, 10s).barrier());
  other.join();
  Bytes into(3);
  Exchange exchange(*transports[1], "what was sent to another generation");
  exchange.receive(0, {1, 0}, into);
  expect_says(error_of<Unavailable>([&] { exchange.finish(50ms); }), "sent nothing for 0.05 s");
}

TEST(InProcess, WhoLeftAnExchangeIsOutOfTheGroup) {
  const auto problems = run_as_threads(2, [](Transport& transport) {
    if (transport.rank() == 1) return;
    Bytes into(1);
    { Exchange(transport, "step 3").receive(1, {3, 0}, into); }
    transport.progress();
  });
  expect_says(problems[0],
              "this rank has left its group (it stopped in the midst of step 3): the group has to form again");
}

TEST(Checksum, SeesEachBit) {
  for (const std::size_t size : {1u, 7u, 8u, 31u, 32u, 33u, 100u}) {
    Bytes bytes = summands(u8, 0, static_cast<std::int64_t>(size));
    const std::uint64_t whole = hash_of_bytes(bytes);
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_NE(hash_of_bytes(bytes), whole) << size << " " << bit;
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
  }
}

/// Two steps of a job with one sum in pieces, a broadcast and a barrier.
void small_job(Transport& transport, std::chrono::milliseconds timeout) {
  Collectives collectives(transport, 4, timeout, 2048);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    collectives.begin_step(step);
    if (all_reduced(collectives, f32, 6000) != plain_sums(f32, 4, 6000)) throw Error("wrong sums");
    Bytes bytes = summands(u8, transport.rank(), 10);
    collectives.broadcast(1, bytes);
    if (bytes != summands(u8, 1, 10)) throw Error("wrong bytes");
    collectives.barrier();
  }
}

int messages_of_small_job() {
  FaultyTransport* counted = nullptr;
  int sent = 0;
  expect_all_well(run_as_threads(
      3,
      [&](Transport& transport) {
        small_job(transport, 20s);
        if (transport.rank() == 1) sent = counted->sent();
      },
      [&](int rank, std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
        auto faulty = std::make_unique<FaultyTransport>(std::move(inner), std::vector<Fault>{});
        if (rank == 1) counted = faulty.get();
        return faulty;
      }));
  return sent;
}

/// What the three ranks throw if rank 1 has this fault. Faults lie below the checksums, as those of a network.
std::vector<std::string> run_with(Fault fault, std::chrono::milliseconds timeout) {
  FaultyTransport* at_fault = nullptr;
  return run_as_threads(
      3,
      [&](Transport& transport) {
        small_job(transport, timeout);
        if (transport.rank() == 1) at_fault->send_late();
      },
      [&](int rank, std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
        if (rank == 1) {
          auto faulty = std::make_unique<FaultyTransport>(std::move(inner), std::vector<Fault>{});
          if (fault.kind == Fault::Kind::strike && !fault.strike)
            fault.strike = [stopped = faulty.get()] { stopped->stop(); };
          faulty->set(fault);
          at_fault = faulty.get();
          inner = std::move(faulty);
        }
        return std::make_unique<CheckedTransport>(std::move(inner));
      });
}

TEST(Faults, DelayedAndDoubledMessagesChangeNothing) {
  const int messages = 2 * messages_of_small_job();  // with receipts
  ASSERT_GT(messages, 40);
  for (const auto kind : {Fault::Kind::delay, Fault::Kind::duplicate}) {
    for (int message = 0; message < messages; message += 3) expect_all_well(run_with({kind, message}, 20s));
    expect_all_well(run_with({.kind = kind, .is_lasting = true, .delay = 1ms}, 20s));
  }
}

TEST(Faults, DamagedBytesAreNoticed) {
  const int messages = 2 * messages_of_small_job();
  for (int message = 0; message < messages; ++message) {
    const auto problems = run_with({Fault::Kind::corrupt, message}, 20s);
    std::string all;
    for (const std::string& problem : problems) all += problem + "\n";
    EXPECT_NE(all.find("damaged on their way"), std::string::npos) << message << "\n" << all;
    EXPECT_EQ(all.find("wrong"), std::string::npos) << all;
  }
}

TEST(Faults, LostMessagesAndStoppedRanksAreNamedWithinTheDeadline) {
  const int messages = 2 * messages_of_small_job();
  const auto begin = Clock::now();
  int runs = 0;
  for (const auto kind : {Fault::Kind::drop, Fault::Kind::strike})
    for (int message = 0; message < messages; message += 9, ++runs) {
      const auto problems = run_with({kind, message}, 60ms);
      std::string all;
      for (const std::string& problem : problems) all += problem + "\n";
      EXPECT_NE(all.find(" nothing for 0.06 s"), std::string::npos) << message << "\n" << all;
    }
  EXPECT_LT(Clock::now() - begin, runs * 2s);
}

TEST(Faults, AKilledRankEndsAllAtOnce) {
  const int messages = messages_of_small_job();
  for (int message = 0; message < messages; message += 2) {
    const auto begin = Clock::now();
    const auto problems =
        run_with({.kind = Fault::Kind::strike, .message = message, .strike = [] { throw Error("killed"); }}, 60s);
    EXPECT_EQ(problems[1], "killed");
    for (const std::size_t rank : {0u, 2u}) expect_says(problems[rank], "has left the group");
    EXPECT_LT(Clock::now() - begin, 20s);
  }
}

}  // namespace
}  // namespace gradus::transport_test
