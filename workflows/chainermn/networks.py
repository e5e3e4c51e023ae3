"""What can be trained: ResNet-50, and a network small enough for processors."""

from typing import Any

import chainer
import chainer.functions as F
import chainer.links as L


class ResNet50(chainer.Chain):  # type: ignore[misc]
    """ResNet-50 with its 1,000 classes, untrained."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.layers = L.ResNet50Layers(pretrained_model=None)

    def __call__(self, pictures: Any) -> Any:
        return self.layers(pictures, layers=["fc6"])["fc6"]


class Small(chainer.Chain):  # type: ignore[misc]
    """Two convolutions and a linear layer: 0.07 million parameters at 224 pixels."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        with self.init_scope():
            self.one = L.Convolution2D(3, 16, 3, stride=2)
            self.two = L.Convolution2D(16, 32, 3, stride=2)
            self.linear = L.Linear(None, classes)

    def __call__(self, pictures: Any) -> Any:
        hidden = F.max_pooling_2d(F.relu(self.one(pictures)), 2)
        hidden = F.max_pooling_2d(F.relu(self.two(hidden)), 2)
        return self.linear(hidden)


def network(name: str, classes: int) -> chainer.Chain:
    """The network of that name."""
    return ResNet50() if name == "resnet50" else Small(classes)
