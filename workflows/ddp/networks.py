"""What can be trained: ResNet-50, and a network small enough for processors. As ChainerMN's."""

from itertools import pairwise

from torch import Tensor, nn

CLASSES = 1000  # ResNet-50's, whatever the images have
WIDTHS, BLOCKS = (64, 128, 256, 512), (3, 4, 6, 3)  # of ResNet-50's four stages
EXPANSION = 4


def convolution(inward: int, outward: int, side: int, stride: int = 1) -> nn.Sequential:
    """A convolution that keeps the size but for its stride, and batch normalization."""
    made = nn.Conv2d(inward, outward, side, stride, padding=side // 2, bias=False)
    nn.init.kaiming_normal_(made.weight)
    return nn.Sequential(made, nn.BatchNorm2d(outward))


class Bottleneck(nn.Module):
    """Three convolutions beside a short cut; the first strides, as He et al. print it."""

    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        outward = EXPANSION * width
        self.layers = nn.Sequential(
            convolution(inward, width, 1, stride),
            nn.ReLU(inplace=True),
            convolution(width, width, 3),
            nn.ReLU(inplace=True),
            convolution(width, outward, 1),
        )
        same = stride == 1 and inward == outward
        self.short_cut = nn.Identity() if same else convolution(inward, outward, 1, stride)
        self.last = nn.ReLU(inplace=True)

    def forward(self, hidden: Tensor) -> Tensor:
        summed: Tensor = self.last(self.layers(hidden) + self.short_cut(hidden))
        return summed


def resnet50() -> nn.Sequential:
    """ResNet-50 (He et al., Deep residual learning, table 1), untrained: 25,557,032 weights."""
    stem = [convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    inward = 64
    for stage, (width, blocks) in enumerate(zip(WIDTHS, BLOCKS, strict=True)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            stem.append(Bottleneck(inward, width, stride))
            inward = EXPANSION * width
    return nn.Sequential(*stem, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inward, CLASSES))


def small(classes: int) -> nn.Sequential:
    """Two convolutions and a linear layer, which knows its size once it has seen a picture."""
    layers: list[nn.Module] = []
    for inward, outward in pairwise((3, 16, 32)):
        layers += [nn.Conv2d(inward, outward, 3, stride=2), nn.ReLU()]
        layers += [nn.MaxPool2d(2, ceil_mode=True)]
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(classes))


def network(name: str, classes: int) -> nn.Sequential:
    """The network of that name."""
    return resnet50() if name == "resnet50" else small(classes)
