#include "gradus/distribute/membership/meeting.h"
#include <unistd.h>
#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include "gradus/base/clock.h"
#include "gradus/base/error.h"
#include "gradus/base/host_name.h"
#include "gradus/base/notice.h"
#include "gradus/base/own_thread.h"
#include "gradus/distribute/cluster/json_fields.h"
#include "gradus/distribute/messages/transport.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_doing = 1000;  // bytes of a rank's account of its work
constexpr std::string_view meeting_answer = "an answer of the meeting";
constexpr std::string_view digits = "0123456789abcdef";

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {digits[byte / 16], digits[byte % 16]};
  }
  return out;
}

std::string bytes_of(std::string_view hexadecimal) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    const auto high = digits.find(hexadecimal[i]), low = digits.find(hexadecimal[i + 1]);
    require<DataError>(high != std::string_view::npos && low != std::string_view::npos, meeting_answer,
                       ": no hexadecimal digits");
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

std::string drawn_incarnation() {
  std::random_device random;
  std::string out;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t word = random();
    out += hexadecimal({reinterpret_cast<const char*>(&word), sizeof word});
  }
  return out;
}

std::vector<std::string> strings(const Json& answer, const std::string& name) {
  const Json& list = field(answer, meeting_answer, name);
  if (!list.is_array()) throw unexpected(meeting_answer, name, "a list", list);
  std::vector<std::string> out;
  for (const Json& each : list) out.push_back(string(each, meeting_answer, name));
  return out;
}

/// The ranks that have left in order, with their last work; empty if the answer says nothing about it.
std::map<int, std::string> left_ranks(const Json& answer, int ranks) {
  std::map<int, std::string> out;
  const auto list = answer.find("left");
  if (list == answer.end()) return out;
  if (!list->is_array()) throw unexpected(meeting_answer, "left", "a list", *list);
  for (const Json& each : *list) {
    const int rank = integer(field(each, meeting_answer, "rank"), meeting_answer, "rank");
    require<DataError>(rank >= 0 && rank < ranks, meeting_answer, ": rank ", rank, " has left, of ", ranks, " ranks");
    out.emplace(rank, string(field(each, meeting_answer, "did"), meeting_answer, "did"));
  }
  return out;
}

}  // namespace

MeetingTerms Meeting::terms(const Cluster& given, const Introduction& introduction) {
  const Cluster cluster = given.settled();
  return {cluster.ranks(),      introduction.generation, introduction.fingerprint,
          introduction.version, cluster.heartbeat,       std::min(cluster.heartbeat, cluster.timeout / 2),
          cluster.workers};
}

Meeting::Meeting(const Cluster& cluster, Introduction introduction, std::shared_ptr<MeetingDesk> desk,
                 std::shared_ptr<CommitWitness> witness)
    : cluster_(cluster.settled()),
      introduction_(std::move(introduction)),
      incarnation_(drawn_incarnation()),
      place_(cluster.in_process || cluster.ranks() == 1 ? "this process" : cluster.meeting().to_string()),
      desk_(std::move(desk)),
      witness_(std::move(witness)),
      reports_(cluster) {
  cluster_.check();
  require(cluster_.task == TaskType::worker || cluster_.task == TaskType::chief,
          "MultiWorkerMirroredStrategy: ", cluster_.source.empty() ? "the cluster" : cluster_.source,
          " says that this process is ", cluster_.task == TaskType::evaluator ? "an " : "a ", name_of(cluster_.task),
          ", which is none of the ranks that train together: ",
          cluster_.task == TaskType::evaluator
              ? "restore checkpoints in it, and evaluate without the strategy"
              : "start the program without parameter servers (gradus launch without --servers; no `ps` in TF_CONFIG, "
                "no `parameter_servers` in GRADUS_CLUSTER), or write its loop with ParameterServerStrategy");
  internal_check(!cluster_.in_process || desk_ != nullptr, "ranks of one process meet at no desk");
  if (desk_ == nullptr && cluster_.rank == 0) {
    desk_ = std::make_shared<MeetingDesk>(terms(cluster_, introduction_));
    owns_desk_ = true;
    if (cluster_.ranks() > 1)
      server_ = grpc_server(cluster_.meeting(), cluster_.interface, cluster_.credentials, *desk_);
  }
  client_ = desk_ != nullptr ? in_process_client(*desk_) : grpc_client(cluster_.meeting(), cluster_.credentials);
  reports_.say(RankState::joins);
  try {
    const Json roster = object(await(question("join"), "all here", "rank 0"), meeting_answer);
    names_ = strings(roster, "names");
    hosts_ = strings(roster, "hosts");
    require<DataError>(static_cast<int>(names_.size()) == cluster_.ranks() && hosts_.size() == names_.size(),
                       meeting_answer, ": there are ", names_.size(), " names of ", cluster_.ranks(), " ranks");
    if (cluster_.ranks() > 2) meet_witness();
    start_beating();
    reports_.say(RankState::together);
  } catch (const Error& error) {
    const bool by_peers =
        dynamic_cast<const Unavailable*>(&error) != nullptr && dynamic_cast<const TurnedAway*>(&error) == nullptr;
    reports_.say(by_peers ? RankState::followed : RankState::failed, error.what());
    // Ranks that arrive a little later get the reason, too.
    if (!owns_desk_ && !names_.empty()) fail(error.what());
    if (owns_desk_) end(error.what(), false, std::min<std::chrono::milliseconds>(5s, cluster_.timeout / 4));
    throw;
  }
}

void Meeting::start_beating() {
  is_beating_ = true;
  try {
    beating_ = own_thread("the heartbeat of this rank", [this] { beat(); });
  } catch (...) {
    is_beating_ = false;
    throw;
  }
}

/// For more than two ranks: with two there is no third one to inform.
void Meeting::meet_witness() {
  if (cluster_.in_process) {
    if (witness_ != nullptr) witness_client_ = in_process_client(*witness_);
    return;
  }
  std::string address;
  if (cluster_.rank == 1) {
    witness_ = std::make_shared<CommitWitness>(cluster_.ranks());
    const Address where{own_host(cluster_.meeting(), cluster_.interface), 0};
    witness_server_ = grpc_server(where, {}, cluster_.credentials, *witness_, "rank 1 cannot listen");
    address = Address{where.host, witness_server_->port()}.to_string();
  }
  address = share("witness", address)[1];
  if (cluster_.rank < 2) return;
  witness_client_ = grpc_client(Address::parse(address, names_[1]), cluster_.credentials, names_[1]);
  std::string problem = "it does not answer";
  try {
    if (witness_client_->ask(CommitWitness::greeting(), in(std::min<std::chrono::milliseconds>(2s, cluster_.heartbeat)),
                             true))
      return;
    if (const std::string why = witness_client_->problem(); !why.empty()) problem = why;
  } catch (const Unavailable& error) { problem = error.what(); }
  notice(text("gradus: rank ", cluster_.rank, " cannot ask ", names_[1], " at ", address,
              " about steps, should rank 0 be lost: ", problem, "\n"));
}

Meeting::~Meeting() {
  const bool in_order = is_leaving_;
  if (!in_order) {
    fail("it has ended before its work was done");
    is_leaving_ = true;
  }
  client_->cancel();
  beating_.join();
  if (witness_server_ != nullptr) {
    if (is_desk_silent_) witness_->wait_until_asked(in(cluster_.heartbeat));
    witness_server_->stop(1s);
  }
  if (!owns_desk_) return;
  const auto patience = std::min<std::chrono::milliseconds>(2s, cluster_.heartbeat);
  end(text(names_[0], " has ended, and with it the meeting"), in_order, patience);
}

void Meeting::end(const std::string& why, bool in_order, std::chrono::milliseconds patience) {
  desk_->close(why, in_order);
  if (server_ == nullptr) return;
  desk_->wait_until_told(in(patience));
  server_->stop(1s);
}

std::string Meeting::question(std::string_view kind) const {
  Json out = {{"kind", kind}, {"rank", cluster_.rank}, {"incarnation", incarnation_}};
  if (kind == "join") {
    out["protocol"] = MeetingDesk::protocol;
    out["version"] = introduction_.version;
    out["fingerprint"] = introduction_.fingerprint;
    out["generation"] = introduction_.generation;
    out["ranks"] = cluster_.ranks();
    out["host"] = host_name("a host without a name");
    out["process"] = static_cast<int>(getpid());
  }
  return written(out);
}

/// Asks the desk. Before the ranks have met, rank 0 may not have started yet, or may still end the group before.
Meeting::Heard Meeting::ask_desk(const std::string& question, Deadline deadline) {
  const bool joins = names_.empty();
  try {
    Heard heard{.answer = client_->ask(question, deadline, joins)};
    if (!heard.answer) heard.problem = client_->problem();
    else if (joins) note_group_before(heard);
    return heard;
  } catch (const LeftOff&) { throw; } catch (const TurnedAway&) {
    throw;
  } catch (const Unavailable& error) {
    if (joins) return {.problem = error.what(), .is_early = true};
    throw Unavailable(text(names_[0], ", where the ranks meet, is gone: ", error.what()));
  }
}

void Meeting::note_group_before(Heard& heard) {
  const Json read = object(*heard.answer, meeting_answer);
  if (string(field(read, meeting_answer, "kind"), meeting_answer, "kind") != "before") return;
  heard.is_early = true;
  heard.problem = text("at this place is still the meeting of the group before, which has ended: ",
                       string(field(read, meeting_answer, "why"), meeting_answer, "why"));
}

std::string Meeting::await(std::string question, std::string_view wanted, std::string_view purpose) {
  const auto report = std::min(cluster_.heartbeat, cluster_.timeout / 2);
  Clock::duration waited{}, next_report = report;
  std::string missing(purpose);
  for (;;) {
    // The desk holds a question for the time of a report; without an answer soon after it, it is not there.
    const auto patience = std::min<Clock::duration>(cluster_.timeout - waited, report + report / 4);
    const auto asked = Clock::now();
    const Heard heard = ask_desk(question, asked + patience);
    if (heard.answer) {
      const Json read = object(*heard.answer, meeting_answer);
      const std::string kind = string(field(read, meeting_answer, "kind"), meeting_answer, "kind");
      if (kind == wanted) return *heard.answer;
      if (kind == "failed" || kind == "over") {
        const std::string why = string(field(read, meeting_answer, "why"), meeting_answer, "why");
        lose(why);
        throw Unavailable(why);
      }
      if (kind == "wait") missing = listed(strings(read, "missing"));
    }
    if (heard.is_early) std::this_thread::sleep_for(std::min<Clock::duration>(20ms, patience));
    // The client counts only time in which this process ran; its answer may be a little late.
    waited += std::min<Clock::duration>(Clock::now() - asked, patience + 500ms);
    const std::string state =
        text(cluster_.ranks(), " ranks meet at ", place_, "; missing after ", tenths_of_seconds(waited),
             " s: ", missing, heard.problem.empty() ? "" : ": ", heard.problem);
    if (waited >= cluster_.timeout)
      throw Unavailable(text(state,
                             ": it was not started, cannot reach the meeting, or is stopped (Cluster::timeout is ",
                             tenths_of_seconds(cluster_.timeout), " s)"));
    if (waited < next_report) continue;
    notice(text("gradus: rank ", cluster_.rank, " waits: ", state, "\n"));
    next_report = waited + report;
  }
}

bool Meeting::is_on_one_host() const {
  return std::ranges::all_of(hosts_, [&](const std::string& host) { return host == hosts_[0]; });
}

std::vector<std::string> Meeting::share(const std::string& topic, std::string_view bytes) {
  internal_check(bytes.size() <= MeetingDesk::most_shared_bytes, "too much is shared at a meeting");
  Json asked = parse_json(question("share"), meeting_answer);
  asked["topic"] = text(shares_++, ' ', topic);  // a repeated question is not taken for the next share
  asked["value"] = hexadecimal(bytes);
  const Json answer = object(await(written(asked), "shared", topic), meeting_answer);
  std::vector<std::string> out;
  for (const std::string& each : strings(answer, "values")) out.push_back(bytes_of(each));
  require<DataError>(static_cast<int>(out.size()) == cluster_.ranks(), meeting_answer, ": there are ", out.size(),
                     " values of ", cluster_.ranks(), " ranks");
  return out;
}

void Meeting::set_doing(std::string doing) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
}

void Meeting::beat() {
  hear();
  {
    const std::lock_guard lock(mutex_);
    is_beating_ = false;
  }
  changed_.notify_all();
}

void Meeting::hear() {
  const std::string begun = question("beat");
  while (!is_leaving_) {
    Json asked = parse_json(begun, meeting_answer);
    {
      const std::lock_guard lock(mutex_);
      asked["doing"] = doing_.substr(0, most_doing);
      asked["left"] = left_.size();
    }
    try {
      const auto answer = client_->ask(written(asked), Clock::now() + 2 * cluster_.heartbeat, false);
      if (!answer) {
        lose(text(names_[0], ", where the ranks meet, has given no sign of life for ",
                  tenths_of_seconds(2 * cluster_.heartbeat), " s: it is stopped or cannot be reached"));
        return;
      }
      const Json read = object(*answer, meeting_answer);
      const std::string kind = string(field(read, meeting_answer, "kind"), meeting_answer, "kind");
      if (kind == "alive") {
        note_left(left_ranks(read, cluster_.ranks()));
        continue;
      }
      if (read.contains("decided")) {
        const std::lock_guard lock(mutex_);
        heard_ = CommitWitness::decided(*answer);
      }
      if (kind == "over") note_left(left_ranks(read, cluster_.ranks()));
      else lose(string(field(read, meeting_answer, "why"), meeting_answer, "why"));
    } catch (const Error& error) { lose(text(names_[0], ", where the ranks meet, is gone: ", error.what())); }
    return;
  }
}

void Meeting::lose(const std::string& why) {
  if (is_leaving_) return;
  std::function<void(const std::string&)> told;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
    told = std::exchange(told_, {});
  }
  if (told) told(why);
}

void Meeting::note_left(std::map<int, std::string> ranks) {
  LeftTold told;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(ranks, [&](const auto& each) { return each.first == cluster_.rank || !left_.insert(each).second; });
    told = left_told_;
  }
  if (!told) return;
  for (const auto& [rank, did] : ranks) told(rank, did);
}

void Meeting::on_left(LeftTold told) {
  std::map<int, std::string> before;
  {
    const std::lock_guard lock(mutex_);
    before = left_;
    left_told_ = told;
  }
  for (const auto& [rank, did] : before) told(rank, did);
}

void Meeting::check_all_here() const {
  const std::lock_guard lock(mutex_);
  if (left_.empty()) return;
  const auto& [rank, did] = *left_.begin();
  throw Unavailable(text(doing_.empty() ? "" : doing_ + " was done here, and then ",
                         names_[static_cast<std::size_t>(rank)], has_left_in_order(did)));
}

void Meeting::on_failure(std::function<void(const std::string&)> told) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) {
      told_ = std::move(told);
      return;
    }
    why = failure_;
  }
  told(why);
}

void Meeting::check() const {
  const std::lock_guard lock(mutex_);
  require<Unavailable>(failure_.empty(), failure_);
}

std::optional<std::string> Meeting::tell(const std::string& question) noexcept {
  try {
    return client_->ask(question, Clock::now() + 1s, false);
  } catch (...) {}  // the receiver has gone: no rank is left to inform
  return {};
}

std::optional<std::uint64_t> Meeting::fail(const std::string& why, bool by_peers) noexcept {
  {
    const std::lock_guard lock(mutex_);
    by_peers = by_peers || !failure_.empty();
  }
  reports_.say(by_peers ? RankState::followed : RankState::failed, why);  // before any rank follows
  try {
    Json asked = parse_json(question("fail"), meeting_answer);
    asked["why"] = why.substr(0, 4000);
    if (const auto answer = tell(written(asked))) return CommitWitness::decided(*answer);
  } catch (...) {}  // no answer of the desk, or no memory for the question
  if (const auto last = heard()) return last;
  try {
    if (cluster_.rank == 1 && witness_ != nullptr) return witness_->close();
    if (cluster_.rank < 2 || witness_client_ == nullptr) return {};
    const auto answer = witness_client_->ask(CommitWitness::question(cluster_.rank), Clock::now() + 1s, false);
    if (answer) return CommitWitness::decided(*answer);
  } catch (...) {}  // rank 1 is lost, too
  return {};
}

void Meeting::leave() noexcept {
  if (is_leaving_.exchange(true)) return;
  reports_.say(RankState::left);
  try {
    Json asked = parse_json(question("leave"), meeting_answer);
    {
      const std::lock_guard lock(mutex_);
      asked["doing"] = doing_.substr(0, most_doing);
    }
    if (!tell(written(asked))) heard();
  } catch (const std::exception&) {}  // without memory for the question
}

std::optional<std::uint64_t> Meeting::heard() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 1s, [&] { return !is_beating_; });
  is_desk_silent_ = !heard_;
  return heard_;
}

}  // namespace gradus
