/// Without a trace, what is suggested.
#include "gradus/ops/size_choice.h"

namespace gradus {

bool (*SizeChoice::choose)(bool suggested) = [](bool suggested) { return suggested; };
bool (*SizeChoice::decide)(bool suggested) = [](bool suggested) { return suggested; };

}  // namespace gradus
