/// The secret of a server that this machine alone reaches, where nobody has given one: the server makes it and leaves
/// it in a file for its user, and clients of that user find it there. So other users of the machine are strangers.
///
/// The file is named by port and network namespace, has mode 600, and is in a folder of mode 700 that belongs to the
/// user: /run/user/UID/gradus, else /tmp/gradus-UID, else /dev/shm/gradus-UID. The server holds a lock on it as long as
/// it lives: a file that is not locked was left by a process that was killed.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "gradus/distribute/rpc.h"

namespace gradus {

/// True where a server at this place has nothing else that keeps strangers out.
bool needs_left_token(const Address& where, const Credentials& credentials);

/// A token that nobody has had before. Unavailable if the system gives no random numbers.
std::string new_token();
/// The same one for each server of this process at a port other than 0: who knows it reaches the next one, too.
std::string token_of_process(int port);

/// A token that lies in its file as long as this lives.
class LeftToken {
 public:
  /// Replaces a file that was left before. Unavailable says which places were tried, and how to do without them.
  LeftToken(const Address& where, const std::string& token);
  ~LeftToken();
  LeftToken(const LeftToken&) = delete;

 private:
  std::string name_;
  std::filesystem::path folder_;
  int file_ = -1;
};

/// What was found in those places.
struct FoundToken {
  std::string token = {};    // empty: there is none
  std::string problem = {};  // for people: a file or folder that is not taken, and why
};
FoundToken find_token(const Address& where);
/// The folders in which this user's tokens may lie.
std::vector<std::filesystem::path> token_folders();

/// A client that looks for the token of the server, and waits for it as for the server itself. `connect` makes the
/// client that has it.
std::unique_ptr<RpcClient> client_with_left_token(
    const Address& where, const std::string& what,
    std::function<std::unique_ptr<RpcClient>(const std::string& token)> connect);

}  // namespace gradus
