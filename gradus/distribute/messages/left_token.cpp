#include "gradus/distribute/messages/left_token.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <system_error>
#include <utility>
#include "gradus/base/error.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string reason() { return std::generic_category().message(errno); }

/// A descriptor, closed in the end.
class Opened {
 public:
  explicit Opened(int descriptor) : descriptor_(descriptor) {}
  Opened(Opened&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Opened& operator=(Opened&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Opened(const Opened&) = delete;
  ~Opened() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// Ports belong to a network namespace; folders may be shared by several.
std::string name_of(const Address& where) {
  struct stat status{};
  const auto network = stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
  const bool is_usual = where.host == "localhost" || where.host == "127.0.0.1" || where.host == "::1";
  return text("meeting-", is_usual ? "" : where.host + "-", where.port, '-', network);
}

/// Tokens that this process has left, by file name: a process cannot see its own lock on a file.
class OwnTokens {
 public:
  static OwnTokens& all() {
    static auto* const only = new OwnTokens;  // servers may stop as the process ends
    return *only;
  }
  void add(const std::string& name, const std::string& token) {
    const std::lock_guard lock(mutex_);
    left_[name] = token;
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    left_.erase(name);
  }
  std::string find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = left_.find(name);
    return found != left_.end() ? found->second : "";
  }
  std::string of_port(int port) {
    const std::lock_guard lock(mutex_);
    std::string& token = of_ports_[port];
    if (token.empty()) token = new_token();
    return token;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> left_;
  std::map<int, std::string> of_ports_;
};

/// Empty if only this user can reach the file with this `status`; otherwise the reason.
std::string problem_of(const struct stat& status, const std::string& what) {
  if (status.st_uid != geteuid()) return text(what, " belongs to user ", status.st_uid, ", not to user ", geteuid());
  if ((status.st_mode & 077) == 0) return {};
  TextStream mode;
  mode << std::oct << (status.st_mode & 0777);
  return text(what, " is open to other users (mode ", mode.str(), "): remove it");
}

/// The folder, if only this user can reach it; otherwise `problem` gives the reason, and is empty if the folder does
/// not exist.
Opened opened_folder(const fs::path& folder, std::string& problem) {
  Opened opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) {
    if (errno != ENOENT) problem = text(folder.string(), ": ", reason());
    return opened;
  }
  struct stat status{};
  if (fstat(opened.get(), &status) == 0) problem = problem_of(status, folder.string());
  else problem = text(folder.string(), ": ", reason());
  return problem.empty() ? std::move(opened) : Opened(-1);
}

struct flock whole_file(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Writes and locks the token under a temporary name and renames it, so that it appears whole and locked. Empty on
/// success, otherwise the reason.
std::string write_token(int folder, const std::string& name, const std::string& token, Opened& kept) {
  const std::string part = text(name, '.', getpid());
  unlinkat(folder, part.c_str(), 0);
  Opened file(openat(folder, part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return reason();
  const std::string line = token + '\n';
  struct flock lock = whole_file(F_WRLCK);
  const bool is_written = fchmod(file.get(), 0600) == 0 &&
                          write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                          fcntl(file.get(), F_SETLK, &lock) == 0 &&
                          renameat(folder, part.c_str(), folder, name.c_str()) == 0;
  if (!is_written) {
    const std::string why = reason();
    unlinkat(folder, part.c_str(), 0);
    return why;
  }
  kept = std::move(file);
  return {};
}

/// The token in the file; empty if there is none, or if the process that left it has ended.
std::string read_token(int folder, const fs::path& path, std::string& problem) {
  const Opened file(openat(folder, path.filename().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0) {
    if (errno != ENOENT) problem = text(path.string(), ": ", reason());
    return {};
  }
  problem = S_ISREG(status.st_mode) ? problem_of(status, path.string()) : text(path.string(), " is not a file");
  struct flock lock = whole_file(F_RDLCK);
  if (!problem.empty() || fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  std::array<char, 256> bytes{};
  const ssize_t count = read(file.get(), bytes.data(), bytes.size());
  const std::string_view line(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  const std::string_view token = line.substr(0, line.find('\n'));
  const bool is_token = !token.empty() && token.size() < line.size() &&
                        std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_token) problem = text(path.string(), " holds no token");
  return is_token ? std::string(token) : std::string();
}

std::string listed_folders() {
  std::string out;
  for (const fs::path& each : token_folders()) out += (out.empty() ? "" : " or ") + each.string();
  return out;
}

/// 0, or the error number. A listener whose queue is full does not answer: ETIMEDOUT.
int problem_of_connecting(const addrinfo& where) {
  const Opened probe(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return errno;
  if (connect(probe.get(), where.ai_addr, where.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd awaited{probe.get(), POLLOUT, 0};
  constexpr int patience = 200;  // milliseconds; the machine answers itself
  if (poll(&awaited, 1, patience) <= 0) return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof problem;
  return getsockopt(probe.get(), SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? problem : errno;
}

/// The reason why there is no connection: the error of connecting, or a missing token.
std::string problem_at(const Address& where, const FoundToken& found) {
  const std::string port = std::to_string(where.port);
  addrinfo wanted{}, *all = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(where.host.c_str(), port.c_str(), &wanted, &all) != 0) return "its host is not known";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(all, &freeaddrinfo);
  int problem = ECONNREFUSED;
  for (const addrinfo* each = all; each != nullptr && problem != 0; each = each->ai_next)
    problem = problem_of_connecting(*each);
  if (problem != 0) return std::generic_category().message(problem);
  return text("a process listens there, but this user has no token of it in ", listed_folders(),
              found.problem.empty() ? "" : " (" + found.problem + ")",
              ": ranks of several users, or with other folders, need GRADUS_TOKEN, one secret on all of them");
}

class ClientWithLeftToken : public RpcClient {
 public:
  using Connect = std::function<std::unique_ptr<RpcClient>(const std::string& token)>;
  ClientWithLeftToken(Address where, std::string what, Connect connect)
      : where_(std::move(where)), what_(std::move(what)), connect_(std::move(connect)) {}

  std::optional<std::string> ask(std::string_view bytes, Deadline deadline, bool awaits) override {
    const auto begin = Clock::now();
    for (;;) {
      const std::shared_ptr<RpcClient> client = client_until(awaits ? deadline : begin);
      if (client == nullptr) {
        const std::string why = problem();
        require<Unavailable>(awaits, what_, " at ", where_.to_string(), " does not answer: ", why);
        return {};
      }
      try {
        auto answer = client->ask(bytes, deadline, awaits);
        if (!answer && !client->problem().empty()) look_before_next();
        return answer;
      } catch (const LeftOff&) { throw; } catch (const TurnedAway&) {
        // Another server may have started at this port, and its token appears a moment later.
        if (!looks_again(client) && (Clock::now() >= deadline || Clock::now() - begin > 1s)) throw;
      } catch (const Unavailable&) {
        look_before_next();
        throw;
      }
    }
  }
  std::string problem() const override {
    const std::lock_guard lock(mutex_);
    return client_ != nullptr ? client_->problem() : problem_;
  }
  void cancel() override {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    if (client_ != nullptr) client_->cancel();
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::milliseconds pause{10};

  /// The client; null if no token appears before the deadline.
  std::shared_ptr<RpcClient> client_until(Deadline deadline) {
    std::unique_lock lock(mutex_);
    for (;;) {
      require<LeftOff>(!is_cancelled_, what_, " at ", where_.to_string(), " was left");
      if (client_ != nullptr && !looks_) return client_;
      const FoundToken found = find_token(where_);
      if (!found.token.empty()) {
        if (found.token != token_) client_ = nullptr;
        if (client_ == nullptr) client_ = connect_(token_ = found.token);
        looks_ = false;
        return client_;
      }
      if (Clock::now() >= deadline) {
        if (client_ == nullptr) problem_ = problem_at(where_, found);
        return client_;
      }
      changed_.wait_until(lock, std::min(deadline, Clock::now() + pause));
    }
  }
  /// A new server at this place has another token.
  void look_before_next() {
    const std::lock_guard lock(mutex_);
    looks_ = true;
  }
  /// True if the token now differs from that of `refused`; otherwise waits a moment first.
  bool looks_again(const std::shared_ptr<RpcClient>& refused) {
    std::unique_lock lock(mutex_);
    if (client_ != refused) return true;
    if (const std::string token = find_token(where_).token; !token.empty() && token != token_) {
      client_ = nullptr;
      return true;
    }
    changed_.wait_for(lock, 10 * pause);
    return false;
  }

  const Address where_;
  const std::string what_;
  const Connect connect_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<RpcClient> client_;
  std::string token_, problem_;
  bool looks_ = false;  // for another token before asking
  bool is_cancelled_ = false;
};

}  // namespace

bool needs_left_token(const Address& where, const Credentials& credentials) {
  return where.is_loopback() && credentials.token.empty() && !credentials.has_tls();
}

std::string new_token() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<unsigned char, 16> bytes{};
  require<Unavailable>(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
                       "no random token: ", reason());
  std::string out;
  for (const unsigned char byte : bytes) (out += digits[byte >> 4]) += digits[byte & 15];
  return out;
}

std::string token_of_process(int port) { return port == 0 ? new_token() : OwnTokens::all().of_port(port); }

std::vector<fs::path> token_folders() {
  const std::string user = std::to_string(geteuid());
  return {fs::path("/run/user") / user / "gradus", fs::path("/tmp/gradus-" + user),
          fs::path("/dev/shm/gradus-" + user)};
}

LeftToken::LeftToken(const Address& where, const std::string& token) : name_(name_of(where)) {
  std::string problems;
  for (const fs::path& folder : token_folders()) {
    std::string problem;
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) problem = text(folder.string(), ": ", reason());
    Opened kept(-1);
    if (problem.empty())
      if (const Opened opened = opened_folder(folder, problem); opened)
        problem = write_token(opened.get(), name_, token, kept);
    if (kept) {
      folder_ = folder;
      file_ = kept.release();
      OwnTokens::all().add(name_, token);
      return;
    }
    problems += (problems.empty() ? "" : "; ") + (problem.empty() ? folder.string() : problem);
  }
  throw Unavailable(text("the token of ", where.to_string(), " cannot be left for the other ranks of this user: ",
                         problems, ": set GRADUS_TOKEN to one secret on all ranks"));
}

LeftToken::~LeftToken() {
  OwnTokens::all().remove(name_);
  std::string ignored;
  struct stat own{}, there{};
  if (const Opened folder = opened_folder(folder_, ignored);
      folder && fstat(file_, &own) == 0 && fstatat(folder.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      own.st_ino == there.st_ino)
    unlinkat(folder.get(), name_.c_str(), 0);  // not the file of another server that has taken the place
  ::close(file_);
}

FoundToken find_token(const Address& where) {
  const std::string name = name_of(where);
  if (std::string own = OwnTokens::all().find(name); !own.empty()) return {.token = std::move(own)};
  FoundToken found;
  for (const fs::path& folder : token_folders()) {
    std::string problem;
    if (const Opened opened = opened_folder(folder, problem); opened)
      found.token = read_token(opened.get(), folder / name, problem);
    if (!found.token.empty()) return {.token = found.token};
    if (!problem.empty()) found.problem += (found.problem.empty() ? "" : "; ") + problem;
  }
  return found;
}

std::unique_ptr<RpcClient> client_with_left_token(
    const Address& where, const std::string& what,
    std::function<std::unique_ptr<RpcClient>(const std::string& token)> connect) {
  return std::make_unique<ClientWithLeftToken>(where, what, std::move(connect));
}

}  // namespace gradus
